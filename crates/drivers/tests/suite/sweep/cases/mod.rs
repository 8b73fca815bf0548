//! The types with properties and dependencies. `{name}` in a value is the physical ID of a dependency.

mod amazon;
mod clusters;
mod data_services;
mod load_balancing;
mod network_services;
mod settings;

use kiln_testcloud::Service;
use kiln_value::{Value, value};

pub(crate) use amazon::*;
pub(crate) use clusters::*;
pub(crate) use data_services::*;
pub(crate) use load_balancing::*;
pub(crate) use network_services::*;
pub(crate) use settings::*;

/// Passes the names of all cases to a macro.
macro_rules! every_case {
    ($given:ident) => {
        $given! {
            net,
            net_named,
            net_described,
            subnet,
            port,
            port_named,
            router,
            router_interface,
            router_interface_by_port,
            router_gateway,
            router_addresses,
            port_without_addresses,
            floating_ip,
            floating_ip_association,
            security_group,
            security_group_rule,
            security_group_rule_described,
            provider_net,
            qos_policy,
            qos_bandwidth_limit_rule,
            qos_dscp_marking_rule,
            qos_minimum_bandwidth_rule,
            qos_minimum_packet_rate_rule,
            address_scope,
            address_scope_named,
            subnet_pool,
            segment,
            metering_label,
            metering_label_described,
            metering_rule,
            rbac_policy,
            server,
            server_named,
            server_with_agent,
            server_with_pushed_metadata,
            server_on_subnet,
            server_port_described,
            server_from_volume,
            key_pair,
            key_pair_imported,
            key_pair_saved,
            server_group,
            server_group_named,
            flavor,
            flavor_with_id,
            volume,
            volume_named,
            volume_described,
            volume_in_use,
            volume_attachment,
            web_image,
            web_image_with_id,
            project,
            project_described,
            deployed_server,
            deployed_server_with_object,
            deployed_server_with_queue,
            wait_handle, wait_handle_with_object, wait_handle_with_queue,
            wait_handle_of_cfn,
            wait_handle_of_updates,
            scaling_policy,
            scaling_policy_of_cfn,
            role,
            role_named,
            region,
            region_with_id,
            service,
            endpoint,
            keystone_group,
            keystone_user,
            keystone_domain,
            user_role_assignment,
            group_role_assignment,
            volume_type,
            encrypted_volume_type,
            qos_specs,
            qos_association,
            cinder_quota,
            nova_quota,
            neutron_quota,
            octavia_quota,
            host_aggregate,
            trunk,
            extra_route,
            extra_route_set,
            port_forward,
            load_balancer,
            listener,
            pool,
            pool_member,
            health_monitor,
            l7_policy,
            l7_rule,
            lb_flavor,
            lb_flavor_profile,
            lb_zone,
            lb_zone_profile,
            ike_policy,
            ipsec_policy,
            vpn_service,
            ipsec_site_connection,
            firewall,
            firewall_policy,
            firewall_rule,
            flow_classifier,
            port_pair,
            port_pair_group,
            port_chain,
            tap_service,
            tap_flow,
            l2_gateway,
            l2_gateway_connection,
            network_gateway,
            barbican_secret,
            barbican_order,
            generic_container,
            certificate_container,
            rsa_container,
            dns_zone,
            dns_record_set,
            alarm,
            composite_alarm,
            event_alarm,
            gnocchi_metrics_alarm,
            gnocchi_aggregate_alarm,
            gnocchi_resource_alarm,
            member_health_alarm,
            prometheus_alarm,
            swift_container,
            swift_signal_handle,
            zaqar_queue,
            zaqar_subscription,
            zaqar_signed_url,
            zaqar_trigger,
            cron_trigger,
            share_security_service,
            ec2_instance,
            ec2_security_group,
            ec2_volume,
            ec2_volume_attachment,
            ec2_vpc,
            ec2_subnet,
            ec2_gateway_attachment,
            ec2_route_table,
            ec2_route_table_association,
            ec2_network_interface,
            s3_bucket,
            iam_user,
            ec2_address,
            ec2_address_association,
            cluster_template,
            bay_model,
            blazar_host,
            blazar_lease,
            ironic_port,
            share,
            share_described,
            share_network,
            share_type,
            workflow,
            workflow_named,
            external_resource,
            cluster,
            cluster_named,
            database_instance,
            database_instance_named,
            database_cluster,
            container,
            container_named,
            nova_floating_ip,
            nova_floating_ip_association,
        }
    };
}
pub(crate) use every_case;

/// A type with properties, as a resource of a template.
pub(crate) struct Case {
    pub(crate) type_name: &'static str,
    /// Its dependencies: name, type, properties.
    pub(crate) needs: Vec<(&'static str, &'static str, Value)>,
    /// Objects that no type makes: name, service, path and body of the request that makes each.
    pub(crate) asks: Vec<(&'static str, &'static str, &'static str, Value)>,
    /// The properties.
    pub(crate) create: Value,
    /// The properties after an update in place, if there is one.
    pub(crate) update: Option<Value>,
    /// Whether it requires an administrator.
    pub(crate) is_admin: bool,
    /// Whether a lost create cannot be identified: it must then report this, and create nothing twice.
    pub(crate) is_untold: bool,
    /// The call whose build can fail, so that the engine deletes the object and tries again.
    pub(crate) build: Option<(Service, &'static str)>,
    /// Data that must be stored after a create, whatever response was lost.
    pub(crate) keeps: Option<&'static str>,
    /// Whether no object shows a mark of Kiln to its users.
    pub(crate) shows_no_mark: bool,
    /// Dependencies that are deleted with the resource.
    pub(crate) takes_along: Option<&'static str>,
}

fn case(type_name: &'static str, create: Value) -> Case {
    Case {
        type_name,
        needs: Vec::new(),
        asks: Vec::new(),
        create,
        update: None,
        is_admin: false,
        is_untold: false,
        build: None,
        keeps: None,
        shows_no_mark: true,
        takes_along: None,
    }
}

impl Case {
    fn needs(mut self, name: &'static str, type_name: &'static str, given: Value) -> Self {
        self.needs.push((name, type_name, given));
        self
    }

    /// An object `{name}` that no type makes: the request that makes it, with the key of the object in both bodies.
    fn asks(mut self, name: &'static str, service: &'static str, path: &'static str, body: Value) -> Self {
        self.asks.push((name, service, path, body));
        self
    }

    /// A network `{net}` with a subnet `{subnet}`.
    fn on_network(self) -> Self {
        let subnet = value!({"network": "{net}", "cidr": "10.71.0.0/24"});
        self.needs("net", "OS::Neutron::Net", value!({})).needs("subnet", "OS::Neutron::Subnet", subnet)
    }

    /// A network with a router `{router}` to the external network, and its interface.
    fn behind_router(self) -> Self {
        let gateway = value!({"external_gateway_info": {"network": "public"}});
        let ends = value!({"router": "{router}", "subnet": "{subnet}"});
        self.on_network().needs("router", "OS::Neutron::Router", gateway).needs(
            "interface",
            "OS::Neutron::RouterInterface",
            ends,
        )
    }

    /// A server `{server}` on a network.
    fn beside_server(self) -> Self {
        self.on_network().needs("server", "OS::Nova::Server", plain_server())
    }

    fn updated(mut self, update: Value) -> Self {
        self.update = Some(update);
        self
    }

    fn by_admin(mut self) -> Self {
        self.is_admin = true;
        self
    }

    fn untold(mut self) -> Self {
        self.is_untold = true;
        self
    }

    fn built_by(mut self, service: Service, path: &'static str) -> Self {
        self.build = Some((service, path));
        self
    }

    fn marked(mut self) -> Self {
        self.shows_no_mark = false;
        self
    }

    fn taking_along(mut self, kind: &'static str) -> Self {
        self.takes_along = Some(kind);
        self
    }

    fn keeping(mut self, data: &'static str) -> Self {
        self.keeps = Some(data);
        self
    }
}

pub(crate) fn net() -> Case {
    let update = value!({"tags": ["b"], "admin_state_up": false});
    case("OS::Neutron::Net", value!({"tags": ["a"]})).updated(update)
}

pub(crate) fn net_named() -> Case {
    case("OS::Neutron::Net", value!({"name": "given"})).updated(value!({"name": "other"}))
}

pub(crate) fn net_described() -> Case {
    let given = |text: &str| value!({"name": "given", "value_specs": {"description": text}});
    case("OS::Neutron::Net", given("a")).updated(given("b"))
}

pub(crate) fn subnet() -> Case {
    let given = |tags: Value| value!({"network": "{net}", "cidr": "10.72.0.0/24", "name": "given", "tags": tags});
    case("OS::Neutron::Subnet", given(value!(["a"])))
        .needs("net", "OS::Neutron::Net", value!({}))
        .updated(given(value!([])))
}

pub(crate) fn port() -> Case {
    let create = value!({"network": "{net}", "security_groups": ["default"], "fixed_ips": [{"subnet": "{subnet}"}]});
    let update = value!({"network": "{net}", "security_groups": [], "tags": ["t"]});
    case("OS::Neutron::Port", create).on_network().updated(update)
}

pub(crate) fn port_named() -> Case {
    let given = |text: &str| value!({"network": "{net}", "name": "given", "value_specs": {"description": text}});
    case("OS::Neutron::Port", given("a")).on_network().updated(given("b"))
}

pub(crate) fn router() -> Case {
    let create = value!({"external_gateway_info": {"network": "public"}, "name": "given", "tags": ["a"]});
    case("OS::Neutron::Router", create).updated(value!({"name": "given", "admin_state_up": false}))
}

pub(crate) fn router_addresses() -> Case {
    let gateway = value!({"network": "public", "external_fixed_ips": [{"subnet": "public-subnet"}]});
    let given = |up: bool| value!({"external_gateway_info": gateway.clone(), "admin_state_up": up});
    case("OS::Neutron::Router", given(true)).updated(given(false)).by_admin()
}

pub(crate) fn port_without_addresses() -> Case {
    let given = |none: bool| value!({"network": "{net}", "no_fixed_ips": none});
    case("OS::Neutron::Port", given(false)).on_network().updated(given(true))
}

pub(crate) fn router_interface() -> Case {
    let ends = value!({"router": "{router}", "subnet": "{subnet}"});
    case("OS::Neutron::RouterInterface", ends).on_network().needs("router", "OS::Neutron::Router", value!({}))
}

pub(crate) fn router_interface_by_port() -> Case {
    case("OS::Neutron::RouterInterface", value!({"router": "{router}", "port": "{port}"}))
        .on_network()
        .needs("router", "OS::Neutron::Router", value!({}))
        .needs("port", "OS::Neutron::Port", value!({"network": "{net}"}))
        .taking_along("ports")
}

pub(crate) fn router_gateway() -> Case {
    let ends = value!({"router_id": "{router}", "network": "public"});
    case("OS::Neutron::RouterGateway", ends).needs("router", "OS::Neutron::Router", value!({}))
}

pub(crate) fn floating_ip() -> Case {
    let create = value!({"floating_network": "public"});
    let update = value!({"floating_network": "public", "port_id": "{port}"});
    case("OS::Neutron::FloatingIP", create)
        .behind_router()
        .needs("port", "OS::Neutron::Port", value!({"network": "{net}"}))
        .updated(update)
}

pub(crate) fn floating_ip_association() -> Case {
    let ends = |port: &str| value!({"floatingip_id": "{address}", "port_id": port});
    case("OS::Neutron::FloatingIPAssociation", ends("{one}"))
        .behind_router()
        .needs("address", "OS::Neutron::FloatingIP", value!({"floating_network": "public"}))
        .needs("one", "OS::Neutron::Port", value!({"network": "{net}"}))
        .needs("two", "OS::Neutron::Port", value!({"network": "{net}"}))
        .updated(ends("{two}"))
}

pub(crate) fn security_group() -> Case {
    let create = value!({"name": "given", "description": "d", "rules": [
        {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22},
        {"protocol": "tcp", "port_range_min": 80, "port_range_max": 80, "remote_mode": "remote_group_id"},
    ]});
    let update = value!({"name": "given", "description": "e", "rules": [
        {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22},
        {"direction": "egress", "protocol": "udp"},
    ]});
    case("OS::Neutron::SecurityGroup", create).updated(update)
}

pub(crate) fn security_group_rule() -> Case {
    let given = value!({"security_group": "{group}", "protocol": "udp", "port_range_min": 53, "port_range_max": 53});
    case("OS::Neutron::SecurityGroupRule", given).needs("group", "OS::Neutron::SecurityGroup", value!({})).marked()
}

pub(crate) fn security_group_rule_described() -> Case {
    let given = value!({"security_group": "{group}", "protocol": "udp", "description": "d"});
    case("OS::Neutron::SecurityGroupRule", given).needs("group", "OS::Neutron::SecurityGroup", value!({}))
}

pub(crate) fn provider_net() -> Case {
    let given =
        |up: bool| value!({"name": "given", "network_type": "vxlan", "segmentation_id": "77", "admin_state_up": up});
    case("OS::Neutron::ProviderNet", given(true)).updated(given(false)).by_admin()
}

pub(crate) fn qos_policy() -> Case {
    let given = |text: &str| value!({"name": "given", "description": text});
    case("OS::Neutron::QoSPolicy", given("d")).updated(given("e")).by_admin()
}

impl Case {
    fn of_policy(self) -> Self {
        self.needs("policy", "OS::Neutron::QoSPolicy", value!({})).by_admin()
    }
}

pub(crate) fn qos_bandwidth_limit_rule() -> Case {
    let given = |rate: i64| value!({"policy": "{policy}", "max_kbps": rate});
    case("OS::Neutron::QoSBandwidthLimitRule", given(100)).of_policy().updated(given(200))
}

pub(crate) fn qos_dscp_marking_rule() -> Case {
    let given = |mark: i64| value!({"policy": "{policy}", "dscp_mark": mark});
    case("OS::Neutron::QoSDscpMarkingRule", given(8)).of_policy().updated(given(10))
}

pub(crate) fn qos_minimum_bandwidth_rule() -> Case {
    let given = |rate: i64| value!({"policy": "{policy}", "min_kbps": rate});
    case("OS::Neutron::QoSMinimumBandwidthRule", given(100)).of_policy().updated(given(200))
}

pub(crate) fn qos_minimum_packet_rate_rule() -> Case {
    let given = |rate: i64| value!({"policy": "{policy}", "min_kpps": rate});
    case("OS::Neutron::QoSMinimumPacketRateRule", given(100)).of_policy().updated(given(200))
}

pub(crate) fn address_scope() -> Case {
    case("OS::Neutron::AddressScope", value!({})).updated(value!({"name": "given"}))
}

pub(crate) fn address_scope_named() -> Case {
    let given = |shared: bool| value!({"name": "given", "shared": shared});
    case("OS::Neutron::AddressScope", given(false)).updated(given(true)).by_admin()
}

pub(crate) fn subnet_pool() -> Case {
    let given =
        |tags: Value| value!({"name": "given", "prefixes": ["10.8.0.0/16"], "address_scope": "{scope}", "tags": tags});
    case("OS::Neutron::SubnetPool", given(value!(["a"])))
        .needs("scope", "OS::Neutron::AddressScope", value!({}))
        .updated(given(value!(["b"])))
}

pub(crate) fn segment() -> Case {
    let given =
        |text: &str| value!({"network": "{net}", "network_type": "vxlan", "name": "given", "description": text});
    case("OS::Neutron::Segment", given("d")).needs("net", "OS::Neutron::Net", value!({})).updated(given("e")).by_admin()
}

pub(crate) fn metering_label() -> Case {
    case("OS::Neutron::MeteringLabel", value!({"name": "given"})).by_admin().marked()
}

pub(crate) fn metering_label_described() -> Case {
    // It cannot be updated: a mark in the description would remain.
    case("OS::Neutron::MeteringLabel", value!({"name": "given", "description": "d"})).by_admin().untold()
}

pub(crate) fn metering_rule() -> Case {
    let given = value!({"metering_label_id": "{label}", "remote_ip_prefix": "10.0.0.0/24", "direction": "egress"});
    case("OS::Neutron::MeteringRule", given).needs("label", "OS::Neutron::MeteringLabel", value!({})).by_admin()
}

pub(crate) fn rbac_policy() -> Case {
    let given = |project: &str| {
        value!({
            "object_type": "network", "object_id": "{net}", "action": "access_as_shared", "target_tenant": project,
        })
    };
    case("OS::Neutron::RBACPolicy", given("one")).needs("net", "OS::Neutron::Net", value!({})).updated(given("two"))
}

fn plain_server() -> Value {
    value!({"image": "cirros", "flavor": "m1.nano", "networks": [{"network": "{net}"}]})
}

pub(crate) fn server() -> Case {
    let update = value!({
        "image": "cirros", "flavor": "m1.micro", "networks": [{"network": "{net}"}], "metadata": {"a": "b"},
    });
    case("OS::Nova::Server", plain_server()).on_network().updated(update).built_by(Service::Compute, "/servers$")
}

fn server_collecting_by(transport: &str) -> kiln_value::Value {
    value!({
        "image": "cirros", "flavor": "m1.nano", "networks": [{"network": "{net}"}], "user_data": "#!/bin/sh",
        "user_data_format": "SOFTWARE_CONFIG", "software_config_transport": transport,
    })
}

pub(crate) fn server_with_agent() -> Case {
    let case = case("OS::Nova::Server", server_collecting_by("POLL_SERVER_HEAT")).on_network();
    case.updated(server_collecting_by("POLL_SERVER_CFN")).built_by(Service::Compute, "/servers$")
}

pub(crate) fn server_with_pushed_metadata() -> Case {
    let case = case("OS::Nova::Server", server_collecting_by("POLL_TEMP_URL")).on_network();
    case.updated(server_collecting_by("ZAQAR_MESSAGE")).built_by(Service::Compute, "/servers$")
}

pub(crate) fn server_named() -> Case {
    let given = |image: &str, tags: Value| {
        value!({
            "name": "given", "image": image, "flavor": "m1.nano", "networks": [{"port": "{port}"}], "tags": tags,
        })
    };
    case("OS::Nova::Server", given("cirros", value!(["a"])))
        .on_network()
        .needs("port", "OS::Neutron::Port", value!({"network": "{net}"}))
        .updated(given("fedora-coreos", value!(["b"])))
        .built_by(Service::Compute, "/servers$")
}

pub(crate) fn server_on_subnet() -> Case {
    let given = |networks: Value| value!({"name": "given", "image": "cirros", "flavor": "m1.nano", "networks": networks, "security_groups": ["default"]});
    let other = value!({"network": "{other}", "cidr": "10.73.0.0/24"});
    case("OS::Nova::Server", given(value!([{"subnet": "{subnet}"}])))
        .on_network()
        .needs("other", "OS::Neutron::Net", value!({}))
        .needs("other_subnet", "OS::Neutron::Subnet", other)
        .updated(given(value!([{"subnet": "{other_subnet}"}, {"network": "{other}"}])))
        .built_by(Service::Compute, "/servers$")
}

pub(crate) fn server_port_described() -> Case {
    let networks = value!([
        {"subnet": "{subnet}", "port_extra_properties": {"value_specs": {"description": "mine"}}},
        {"subnet": "{subnet}"},
    ]);
    case("OS::Nova::Server", value!({"image": "cirros", "flavor": "m1.nano", "networks": networks})).on_network()
}

pub(crate) fn server_from_volume() -> Case {
    let given = value!({
        "flavor": "m1.nano", "networks": [{"network": "{net}"}],
        "block_device_mapping_v2": [{"volume_id": "{volume}", "delete_on_termination": false}],
    });
    case("OS::Nova::Server", given).on_network().needs(
        "volume",
        "OS::Cinder::Volume",
        value!({"size": 1, "image": "cirros"}),
    )
}

pub(crate) fn key_pair() -> Case {
    case("OS::Nova::KeyPair", value!({"name": "given"}))
}

pub(crate) fn key_pair_imported() -> Case {
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJQ4xYpOrBzN3bYO2pW4WkJ8dTRl6v1bqGJ0uVY5hX0K me@here";
    case("OS::Nova::KeyPair", value!({"name": "given", "public_key": key}))
}

pub(crate) fn key_pair_saved() -> Case {
    case("OS::Nova::KeyPair", value!({"name": "given", "save_private_key": true})).keeping("private_key")
}

pub(crate) fn server_group() -> Case {
    case("OS::Nova::ServerGroup", value!({"policies": ["soft-affinity"]}))
}

pub(crate) fn server_group_named() -> Case {
    case("OS::Nova::ServerGroup", value!({"name": "given"})).untold()
}

pub(crate) fn flavor() -> Case {
    let given = |specs: Value, tenants: Value| {
        value!({
            "name": "given", "ram": 64, "vcpus": 1, "is_public": false, "extra_specs": specs, "tenants": tenants,
        })
    };
    case("OS::Nova::Flavor", given(value!({"hw:a": 1}), value!(["demo"])))
        .updated(given(value!({"hw:b": 2}), value!(["demo", "alt_demo"])))
        .by_admin()
}

pub(crate) fn flavor_with_id() -> Case {
    case("OS::Nova::Flavor", value!({"name": "given", "flavorid": "77", "ram": 64, "vcpus": 1})).by_admin()
}

pub(crate) fn volume() -> Case {
    case("OS::Cinder::Volume", value!({"size": 1, "read_only": true}))
        .updated(value!({"size": 2, "name": "other", "metadata": {"a": "b"}}))
        .built_by(Service::Volume, "/volumes$")
}

pub(crate) fn volume_named() -> Case {
    case("OS::Cinder::Volume", value!({"size": 1, "name": "given"}))
        .updated(value!({"size": 3, "name": "given", "read_only": true}))
        .built_by(Service::Volume, "/volumes$")
}

pub(crate) fn volume_described() -> Case {
    let given = |text: &str| value!({"size": 1, "name": "given", "description": text, "metadata": {"a": 1}});
    case("OS::Cinder::Volume", given("d")).updated(given("e")).built_by(Service::Volume, "/volumes$")
}

pub(crate) fn volume_in_use() -> Case {
    // Attached by a separate resource, and updated while attached.
    let ends = value!({"instance_uuid": "{server}", "volume_id": "{one}"});
    case("OS::Cinder::VolumeAttachment", ends).beside_server().needs("one", "OS::Cinder::Volume", value!({"size": 1}))
}

pub(crate) fn volume_attachment() -> Case {
    let ends = |volume: &str| value!({"instance_uuid": "{server}", "volume_id": volume});
    case("OS::Cinder::VolumeAttachment", ends("{one}"))
        .beside_server()
        .needs("one", "OS::Cinder::Volume", value!({"size": 1}))
        .needs("two", "OS::Cinder::Volume", value!({"size": 1}))
        .updated(ends("{two}"))
}

fn image(id: Value, tags: Value) -> Value {
    value!({
        "name": "given", "id": id, "location": "http://images/one", "disk_format": "raw", "container_format": "bare",
        "visibility": "shared", "tags": tags, "extra_properties": {"x": "1"},
    })
}

pub(crate) fn web_image() -> Case {
    case("OS::Glance::WebImage", image(Value::Null, value!(["a"]))).updated(image(Value::Null, value!(["b"])))
}

pub(crate) fn web_image_with_id() -> Case {
    let id = || Value::from("5c1e42a5-9c22-4c4a-8a8f-6fbb5e0c8a11");
    case("OS::Glance::WebImage", image(id(), value!(["a"]))).updated(image(id(), value!([])))
}

pub(crate) fn project() -> Case {
    case("OS::Keystone::Project", value!({})).updated(value!({"enabled": false})).by_admin()
}

pub(crate) fn project_described() -> Case {
    let given = |text: &str| value!({"name": "given", "description": text});
    case("OS::Keystone::Project", given("d")).updated(given("e")).by_admin()
}

pub(crate) fn role() -> Case {
    case("OS::Keystone::Role", value!({})).by_admin()
}

pub(crate) fn role_named() -> Case {
    case("OS::Keystone::Role", value!({"name": "given"})).updated(value!({"name": "other"})).by_admin()
}

pub(crate) fn region() -> Case {
    case("OS::Keystone::Region", value!({"description": "d"})).updated(value!({"description": "e"})).by_admin()
}

pub(crate) fn region_with_id() -> Case {
    case("OS::Keystone::Region", value!({"id": "given"})).by_admin()
}

pub(crate) fn service() -> Case {
    let given = |text: &str| value!({"name": "given", "type": "thing", "description": text});
    case("OS::Keystone::Service", given("d")).updated(given("e")).by_admin()
}

pub(crate) fn endpoint() -> Case {
    let given = |url: &str| value!({"service": "{service}", "interface": "public", "url": url, "region": "RegionOne"});
    case("OS::Keystone::Endpoint", given("http://one"))
        .needs("service", "OS::Keystone::Service", value!({"type": "thing"}))
        .updated(given("http://two"))
        .by_admin()
}

pub(crate) fn deployed_server() -> Case {
    let given = |transport: &str| value!({ "software_config_transport": transport });
    case("OS::Heat::DeployedServer", given("POLL_SERVER_CFN")).updated(given("POLL_SERVER_HEAT"))
}

pub(crate) fn deployed_server_with_object() -> Case {
    let given = |transport: &str| {
        let object = value!({"container": "own", "object": "metadata"});
        value!({ "software_config_transport": transport, "deployment_swift_data": object })
    };
    case("OS::Heat::DeployedServer", given("POLL_TEMP_URL")).updated(given("ZAQAR_MESSAGE"))
}

pub(crate) fn deployed_server_with_queue() -> Case {
    let given = |transport: &str| value!({ "software_config_transport": transport });
    case("OS::Heat::DeployedServer", given("ZAQAR_MESSAGE")).updated(given("POLL_TEMP_URL"))
}

pub(crate) fn wait_handle() -> Case {
    case("OS::Heat::WaitConditionHandle", value!({}))
}

pub(crate) fn wait_handle_with_object() -> Case {
    case("OS::Heat::WaitConditionHandle", value!({"signal_transport": "TEMP_URL_SIGNAL"}))
}

pub(crate) fn wait_handle_with_queue() -> Case {
    case("OS::Heat::WaitConditionHandle", value!({"signal_transport": "ZAQAR_SIGNAL"}))
}

pub(crate) fn wait_handle_of_cfn() -> Case {
    case("AWS::CloudFormation::WaitConditionHandle", value!({}))
}

pub(crate) fn wait_handle_of_updates() -> Case {
    case("OS::Heat::UpdateWaitConditionHandle", value!({}))
}

pub(crate) fn scaling_policy() -> Case {
    let given = |by: i64| value!({"auto_scaling_group_id": "g", "adjustment_type": "change_in_capacity", "scaling_adjustment": by});
    case("OS::Heat::ScalingPolicy", given(1)).updated(given(2))
}

pub(crate) fn scaling_policy_of_cfn() -> Case {
    let given =
        |by: i64| value!({"AutoScalingGroupName": "g", "AdjustmentType": "ExactCapacity", "ScalingAdjustment": by});
    case("AWS::AutoScaling::ScalingPolicy", given(1)).updated(given(2))
}
