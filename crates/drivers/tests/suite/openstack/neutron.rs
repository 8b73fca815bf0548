//! OS::Neutron::*

use kiln_resource::{Driver, Sibling, Siblings};
use kiln_value::{Class, Map, Value, value};

use crate::openstack::ground::Ground;
use crate::resource::{Outcome, Resource};
use crate::scenarios;

scenarios!(
    a_network_and_its_subnet,
    a_port,
    a_router_and_its_interface,
    a_security_group_and_its_rules,
    a_security_group_with_many_rules,
    the_description_of_a_rule,
    a_port_without_addresses,
    a_rule_of_its_own,
    a_floating_address,
    refusals,
);

/// A network with a subnet.
pub(crate) async fn network(ground: &Ground, cidr: &str) -> (Resource, Resource) {
    let net = ground.made("OS::Neutron::Net", "net", value!({})).await;
    let given = value!({"network": net.id(), "cidr": cidr, "dns_nameservers": ["8.8.8.8"]});
    let subnet = ground.made("OS::Neutron::Subnet", "subnet", given).await;
    (net, subnet)
}

async fn a_network_and_its_subnet(ground: &Ground) {
    let (mut net, mut subnet) = network(ground, "10.71.0.0/24").await;
    let shown = net.attributes(&["name", "status", "subnets", "admin_state_up", "show"]).await;
    assert_eq!(shown["name"], net.facts.physical_name.as_str().into());
    assert_eq!(shown["subnets"], vec![subnet.id()].into());
    assert_eq!(shown["show"].str_at("id"), Some(net.id()));
    assert_eq!(subnet.attribute("gateway_ip").await, "10.71.0.1".into());
    assert!(!net.needs_replace_failed().await);

    let tagged = value!({"name": "kiln-renamed", "tags": ["a", "b"], "value_specs": {"description": "d"}});
    assert_eq!(net.update(tagged).await.unwrap(), Outcome::Updated);
    let shown = net.attribute("show").await;
    assert_eq!(shown.str_at("name"), Some("kiln-renamed"));
    assert_eq!(shown.str_at("description"), Some("d"));
    assert_eq!(shown.get("tags"), Some(&value!(["a", "b"])));
    assert_eq!(net.update(value!({})).await.unwrap(), Outcome::Updated);
    let shown = net.attribute("show").await;
    assert_eq!(shown.str_at("name"), Some(net.facts.physical_name.as_str()));
    assert_eq!(shown.get("tags"), Some(&value!([])));

    let wider = value!({"network": net.id(), "cidr": "10.71.0.0/24", "gateway_ip": "", "enable_dhcp": false});
    assert_eq!(subnet.update(wider).await.unwrap(), Outcome::Updated);
    assert_eq!(subnet.attribute("gateway_ip").await, Value::Null);
    assert_eq!(subnet.attribute("dns_nameservers").await, value!([]));
    let other = value!({"network": net.id(), "cidr": "10.72.0.0/24"});
    assert_eq!(subnet.update(other).await.unwrap(), Outcome::Replaced);

    subnet.delete().await;
    net.delete().await;
    assert!(net.needs_replace_failed().await);
    assert_eq!(net.attribute("name").await, Value::Null);
    net.delete().await;
}

async fn a_port(ground: &Ground) {
    let (mut net, mut subnet) = network(ground, "10.73.0.0/24").await;
    let given = value!({
        "network": net.id(),
        "fixed_ips": [{"subnet": subnet.id(), "ip_address": "10.73.0.9"}],
        "security_groups": ["default"],
        "allowed_address_pairs": [{"ip_address": "10.73.0.99"}],
    });
    let mut port = ground.made("OS::Neutron::Port", "port", given).await;
    let shown = port.attributes(&["fixed_ips", "subnets", "network", "security_groups", "mac_address"]).await;
    assert_eq!(shown["fixed_ips"], value!([{"subnet_id": subnet.id(), "ip_address": "10.73.0.9"}]));
    assert_eq!(shown["subnets"].at(0).and_then(|s| s.str_at("id")), Some(subnet.id()));
    assert_eq!(shown["network"].str_at("id"), Some(net.id()));
    assert_eq!(shown["security_groups"].as_list().map(<[Value]>::len), Some(1));

    let without = value!({"network": net.id(), "security_groups": [], "port_security_enabled": true});
    assert_eq!(port.update(without).await.unwrap(), Outcome::Updated);
    let shown = port.attributes(&["fixed_ips", "security_groups", "allowed_address_pairs"]).await;
    assert_eq!(shown["security_groups"], value!([]));
    assert_eq!(shown["allowed_address_pairs"], value!([]));
    assert_eq!(shown["fixed_ips"].as_list().map(<[Value]>::len), Some(1), "addresses stay");
    assert_eq!(port.update(value!({"network": net.id()})).await.unwrap(), Outcome::Updated);
    let groups = port.attribute("security_groups").await;
    assert_eq!(groups.as_list().map(<[Value]>::len), Some(1), "the default group is restored");

    port.delete().await;
    subnet.delete().await;
    net.delete().await;
}

/// The policy of a port may be given by its name, and is removed by an update.
#[tokio::test]
async fn the_qos_policy_of_a_port() {
    let ground = Ground::simulated().await;
    let mut policy = ground.admin_resource("OS::Neutron::QoSPolicy", "policy");
    policy.create(value!({"name": "gold", "shared": true})).await.unwrap();
    let (net, _subnet) = network(&ground, "10.74.0.0/24").await;
    let mut port = ground.resource("OS::Neutron::Port", "port");
    let unknown = port.create(value!({"network": net.id(), "qos_policy": "silver"})).await.unwrap_err();
    assert!(unknown.to_string().contains("silver"), "{unknown}");
    let port = &mut ground.made("OS::Neutron::Port", "port", value!({"network": net.id(), "qos_policy": "gold"})).await;
    assert_eq!(port.attribute("qos_policy_id").await.as_str(), Some(policy.id()));
    assert_eq!(port.update(value!({"network": net.id()})).await.unwrap(), Outcome::Updated);
    assert_eq!(port.attribute("qos_policy_id").await, Value::Null);
}

async fn a_router_and_its_interface(ground: &Ground) {
    let (mut net, mut subnet) = network(ground, "10.74.0.0/24").await;
    let given = value!({"external_gateway_info": {"network": "public"}});
    let mut router = ground.made("OS::Neutron::Router", "router", given).await;
    let gateway = router.attribute("external_gateway_info").await;
    assert!(gateway.str_at("network_id").is_some());

    let ends = value!({"router": router.id(), "subnet": subnet.id()});
    let mut interface = ground.made("OS::Neutron::RouterInterface", "interface", ends).await;
    assert_eq!(interface.id(), format!("{}:subnet_id={}", router.id(), subnet.id()));
    interface.check().await.unwrap();

    let off = value!({"external_gateway_info": {"network": "public"}, "admin_state_up": false});
    assert_eq!(router.update(off).await.unwrap(), Outcome::Updated);
    assert_eq!(router.update(value!({})).await.unwrap(), Outcome::Updated);
    assert_eq!(router.attribute("external_gateway_info").await, Value::Null);

    interface.delete().await;
    assert!(interface.check().await.unwrap_err().is_not_found());
    interface.delete().await;
    router.delete().await;
    subnet.delete().await;
    net.delete().await;
}

fn rules(group: &Value) -> Vec<(String, Value, Value)> {
    let rules = group.get("security_group_rules").unwrap().as_list().unwrap();
    let text = |rule: &Value, key: &str| rule.get(key).cloned().unwrap_or_default();
    let mut rules: Vec<_> = rules
        .iter()
        .map(|r| (r.str_at("direction").unwrap().to_owned(), text(r, "protocol"), text(r, "port_range_min")))
        .collect();
    rules.sort_by_key(|rule| {
        kiln_value::text::repr(&Value::from(vec![rule.0.as_str().into(), rule.1.clone(), rule.2.clone()]))
    });
    rules
}

async fn a_security_group_and_its_rules(ground: &Ground) {
    let given = value!({"rules": [
        {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22},
        {"protocol": "icmp", "remote_ip_prefix": "10.0.0.0/8"},
        {"protocol": "tcp", "port_range_min": 80, "port_range_max": 80, "remote_mode": "remote_group_id"},
    ]});
    let mut group = ground.made("OS::Neutron::SecurityGroup", "group", given).await;
    let shown = group.attribute("show").await;
    let egress = || ("egress".to_owned(), Value::Null, Value::Null);
    let ingress = |protocol: &str, port: Value| ("ingress".to_owned(), Value::from(protocol), port);
    let expected =
        vec![egress(), egress(), ingress("icmp", Value::Null), ingress("tcp", 22.into()), ingress("tcp", 80.into())];
    assert_eq!(rules(&shown), expected);
    let to_self = shown.get("security_group_rules").unwrap().as_list().unwrap().iter();
    let to_self = to_self.filter(|rule| rule.str_at("remote_group_id") == Some(group.id())).count();
    assert_eq!(to_self, 1);
    let ids = |shown: &Value| -> Vec<(Value, Value)> {
        let rules = shown.get("security_group_rules").unwrap().as_list().unwrap();
        rules.iter().map(|r| (r.get("port_range_min").cloned().unwrap(), r.get("id").cloned().unwrap())).collect()
    };
    let ssh = ids(&shown).into_iter().find(|(port, _)| *port == 22.into()).unwrap();

    let changed = value!({"description": "d", "rules": [
        {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22},
        {"direction": "egress", "protocol": "tcp", "port_range_min": 443, "port_range_max": 443},
    ]});
    assert_eq!(group.update(changed).await.unwrap(), Outcome::Updated);
    let shown = group.attribute("show").await;
    assert_eq!(rules(&shown), vec![("egress".to_owned(), "tcp".into(), 443.into()), ingress("tcp", 22.into())]);
    assert!(ids(&shown).contains(&ssh), "an unchanged rule is not touched");
    assert_eq!(shown.str_at("description"), Some("d"));

    assert_eq!(group.update(value!({"description": "d", "rules": []})).await.unwrap(), Outcome::Updated);
    assert_eq!(rules(&group.attribute("show").await), vec![egress(), egress()]);
    group.delete().await;
}

/// Several rules are created at the same time, and all of them change the row of their group. With the rules that every
/// group has, that is just below Neutron's default quota of a project.
async fn a_security_group_with_many_rules(ground: &Ground) {
    let rule = |port: u16| value!({"protocol": "tcp", "port_range_min": port, "port_range_max": port});
    let ports = |wanted: std::ops::Range<u16>| wanted.map(rule).collect::<Value>();
    let mut group = ground.made("OS::Neutron::SecurityGroup", "group", value!({"rules": (ports(1000..1080))})).await;
    let listed = async |group: &Resource| -> Vec<Value> {
        rules(&group.attribute("show").await).into_iter().map(|(_, _, port)| port).collect()
    };
    let expected = |wanted: std::ops::Range<u16>| -> Vec<Value> {
        [Value::Null, Value::Null].into_iter().chain(wanted.map(Value::from)).collect()
    };
    assert_eq!(listed(&group).await, expected(1000..1080));
    assert_eq!(group.update(value!({"rules": (ports(1040..1100))})).await.unwrap(), Outcome::Updated);
    assert_eq!(listed(&group).await, expected(1040..1100));
    group.delete().await;
}

/// Neutron cannot change a rule: it is created again.
async fn the_description_of_a_rule(ground: &Ground) {
    let given = |first: &str| {
        value!({"rules": [
            {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22, "description": first},
            {"protocol": "tcp", "port_range_min": 80, "port_range_max": 80, "description": "web"},
        ]})
    };
    let mut group = ground.made("OS::Neutron::SecurityGroup", "group", given("one")).await;
    let described = async |group: &Resource| -> Vec<(Value, Value)> {
        let shown = group.attribute("show").await;
        let rules = shown.get("security_group_rules").and_then(Value::as_list).unwrap_or_default().to_vec();
        let field = |rule: &Value, key: &str| rule.get(key).cloned().unwrap_or_default();
        let described = rules.iter().filter(|rule| rule.get("description").is_some_and(Value::is_truthy));
        let mut found: Vec<_> = described.map(|rule| (field(rule, "description"), field(rule, "id"))).collect();
        found.sort_by_key(|(text, _)| kiln_value::text::str(text));
        found
    };
    let before = described(&group).await;
    assert_eq!(group.update(given("two")).await.unwrap(), Outcome::Updated);
    let after = described(&group).await;
    let texts: Vec<&Value> = after.iter().map(|(text, _)| text).collect();
    assert_eq!(texts, [&Value::from("two"), &Value::from("web")]);
    assert_eq!(before[1], after[1], "an unchanged rule is not touched");
    group.delete().await;
}

async fn a_port_without_addresses(ground: &Ground) {
    let (mut net, mut subnet) = network(ground, "10.78.0.0/24").await;
    let given = |no: bool| value!({"network": net.id(), "no_fixed_ips": no});
    let mut port = ground.made("OS::Neutron::Port", "port", given(true)).await;
    assert_eq!(port.attribute("fixed_ips").await, value!([]));
    let mut other = ground.made("OS::Neutron::Port", "other", given(false)).await;
    assert_eq!(other.attribute("fixed_ips").await.as_list().map(<[Value]>::len), Some(1));
    assert_eq!(other.update(given(true)).await.unwrap(), Outcome::Updated);
    assert_eq!(other.attribute("fixed_ips").await, value!([]));
    for resource in [&mut port, &mut other, &mut subnet, &mut net] {
        resource.delete().await;
    }
}

async fn a_rule_of_its_own(ground: &Ground) {
    let mut group = ground.made("OS::Neutron::SecurityGroup", "group", value!({"name": "kilntest-g"})).await;
    let given = value!({"security_group": "kilntest-g", "protocol": "udp", "port_range_min": 53, "port_range_max": 53});
    let mut rule = ground.made("OS::Neutron::SecurityGroupRule", "rule", given.clone()).await;
    let twice = ground.resource("OS::Neutron::SecurityGroupRule", "twice").create(given).await.unwrap_err();
    assert_eq!(twice.class, Class::Conflict);
    rule.delete().await;
    group.delete().await;
}

/// Each rule of a policy is sent with the project that owns it.
#[tokio::test]
async fn the_owner_of_a_qos_rule() {
    let ground = Ground::simulated().await;
    let mut policy = ground.admin_resource("OS::Neutron::QoSPolicy", "policy");
    policy.create(value!({"name": "gold"})).await.unwrap();
    let owner = "0123456789abcdef0123456789abcdef";
    for (kind, given) in [
        ("OS::Neutron::QoSBandwidthLimitRule", value!({"max_kbps": 100})),
        ("OS::Neutron::QoSDscpMarkingRule", value!({"dscp_mark": 8})),
        ("OS::Neutron::QoSMinimumBandwidthRule", value!({"min_kbps": 100})),
        ("OS::Neutron::QoSMinimumPacketRateRule", value!({"min_kpps": 100})),
    ] {
        let mut given = given.as_map().cloned().unwrap_or_default();
        given.extend([("policy".to_owned(), policy.id().into()), ("tenant_id".to_owned(), owner.into())]);
        let mut rule = ground.admin_resource(kind, "rule");
        rule.create(given.into()).await.unwrap();
        assert_eq!(rule.attribute("show").await.str_at("tenant_id"), Some(owner), "{kind}");
    }
}

async fn a_floating_address(ground: &Ground) {
    let (mut net, mut subnet) = network(ground, "10.75.0.0/24").await;
    let gateway = value!({"external_gateway_info": {"network": "public"}});
    let mut router = ground.made("OS::Neutron::Router", "router", gateway).await;
    let ends = value!({"router": router.id(), "subnet": subnet.id()});
    let mut interface = ground.made("OS::Neutron::RouterInterface", "interface", ends).await;
    let mut port = ground.made("OS::Neutron::Port", "port", value!({"network": net.id()})).await;

    let given = value!({"floating_network": "public"});
    let mut address = ground.made("OS::Neutron::FloatingIP", "address", given).await;
    assert_eq!(address.attribute("port_id").await, Value::Null);
    let tied = value!({"floating_network": "public", "port_id": port.id()});
    assert_eq!(address.update(tied).await.unwrap(), Outcome::Updated);
    assert_eq!(address.attribute("port_id").await, port.id().into());
    assert_eq!(address.update(value!({"floating_network": "public"})).await.unwrap(), Outcome::Updated);
    assert_eq!(address.attribute("port_id").await, Value::Null);

    let ends = value!({"floatingip_id": address.id(), "port_id": port.id()});
    let mut association = ground.made("OS::Neutron::FloatingIPAssociation", "association", ends).await;
    let shown = address.attributes(&["port_id", "fixed_ip_address", "router_id"]).await;
    assert_eq!(shown["port_id"], port.id().into());
    assert_eq!(shown["router_id"], router.id().into());
    association.delete().await;
    assert_eq!(address.attribute("port_id").await, Value::Null);

    for resource in [&mut address, &mut port, &mut interface, &mut router, &mut subnet, &mut net] {
        resource.delete().await;
    }
}

async fn refusals(ground: &Ground) {
    let missing = "00000000-0000-4000-8000-000000000000";
    let mut port = ground.resource("OS::Neutron::Port", "port");
    let unknown = port.create(value!({"network": "kiln-no-such-network"})).await.unwrap_err();
    assert_eq!(unknown.to_string(), "NotFound: Unable to find network with name or id 'kiln-no-such-network'");

    let mut net = ground.resource("OS::Neutron::Net", "net");
    net.give(value!({"value_specs": {"description": "d", "shared": true}})).await.unwrap();
    assert_eq!(net.validate().unwrap_err().text, "shared not allowed in value_specs");

    let (mut net, mut subnet) = network(ground, "10.76.0.0/24").await;
    let given = value!({"network": net.id(), "fixed_ips": [{"ip_address": "10.99.0.1"}]});
    let wrong = ground.resource("OS::Neutron::Port", "port").create(given).await.unwrap_err();
    assert_eq!(wrong.class, Class::of("InvalidIpForNetworkClient"), "{wrong}");
    let given = value!({"network": net.id(), "cidr": "10.76.0.0/25"});
    let overlap = ground.resource("OS::Neutron::Subnet", "other").create(given).await.unwrap_err();
    assert_eq!(overlap.class, Class::BadRequest, "{overlap}");
    let given = value!({"router": missing, "subnet": subnet.id()});
    let nowhere = ground.resource("OS::Neutron::RouterInterface", "interface").create(given).await.unwrap_err();
    assert!(nowhere.is_not_found(), "{nowhere}");
    subnet.delete().await;
    net.delete().await;
}

fn sibling<'a>(name: &'a str, kind: &'a str, properties: &'a Map, requires: &'a [String]) -> Sibling<'a> {
    Sibling::new(name, kind, requires, || properties.clone())
}

fn driver(name: &str) -> std::sync::Arc<dyn Driver> {
    let types = kiln_resource::shipped::types().unwrap();
    kiln_drivers::driver_for(types.iter().find(|t| t.name == name).unwrap()).unwrap()
}

#[test]
fn implicit_dependencies() {
    let map = |value: Value| value.as_map().unwrap().clone();
    let net = value!({"get_resource": "net"});
    let subnet = map(value!({"network": net.clone()}));
    let far = map(value!({"network": {"get_resource": "other"}}));
    let interface = map(value!({"router": {"get_resource": "router"}, "subnet": {"get_resource": "subnet"}}));
    let router = map(value!({"external_gateway_info": {"network": "public"}}));
    let port = map(value!({"network": net.clone()}));
    let address = map(value!({"floating_network": "public", "port_id": {"get_resource": "port"}}));
    let server = map(value!({"networks": [{"network": net}]}));
    let on_port = ["port".to_owned()];
    let siblings = Siblings::from_iter([
        sibling("subnet", "OS::Neutron::Subnet", &subnet, &[]),
        sibling("far", "OS::Neutron::Subnet", &far, &[]),
        sibling("interface", "OS::Neutron::RouterInterface", &interface, &[]),
        sibling("router", "OS::Neutron::Router", &router, &[]),
        sibling("port", "OS::Neutron::Port", &port, &[]),
        sibling("address", "OS::Neutron::FloatingIP", &address, &on_port),
    ]);
    let first = |kind: &str, name: &str| {
        let this = siblings.get(name).unwrap();
        driver(kind).dependencies(this, &siblings)
    };
    assert_eq!(first("OS::Neutron::Port", "port"), ["subnet"]);
    assert_eq!(first("OS::Neutron::FloatingIP", "address"), ["interface", "router"]);
    let this = sibling("server", "OS::Nova::Server", &server, &[]);
    assert_eq!(driver("OS::Nova::Server").dependencies(&this, &siblings), ["subnet"]);
}
