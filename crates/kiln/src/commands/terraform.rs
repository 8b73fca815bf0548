//! What other tools call the types of objects. Of terraform-provider-openstack: the resource, and whose ID precedes that of the
//! object in the ID for an import.

/// A type of resources.
pub(crate) struct Named {
    pub(crate) resource_type: &'static str,
    /// The resource of Terraform.
    pub(crate) terraform: &'static str,
    /// What the ID for an import of Terraform begins with, if it is not only that of the object.
    pub(crate) owner: Option<&'static str>,
    /// The object in the `openstack` command.
    pub(crate) openstack: &'static str,
}

const fn named(resource_type: &'static str, terraform: &'static str, openstack: &'static str) -> Named {
    Named { resource_type, terraform, owner: None, openstack }
}

const fn within(
    resource_type: &'static str,
    terraform: &'static str,
    owner: &'static str,
    openstack: &'static str,
) -> Named {
    Named { resource_type, terraform, owner: Some(owner), openstack }
}

const NAMES: &[Named] = &[
    named("OS::Barbican::Secret", "openstack_keymanager_secret_v1", "secret"),
    named("OS::Cinder::QoSSpecs", "openstack_blockstorage_qos_v3", "volume qos"),
    named("OS::Cinder::Volume", "openstack_blockstorage_volume_v3", "volume"),
    within("OS::Cinder::VolumeAttachment", "openstack_compute_volume_attach_v2", "SERVER_ID", "volume attachment"),
    named("OS::Cinder::VolumeType", "openstack_blockstorage_volume_type_v3", "volume type"),
    within("OS::Designate::RecordSet", "openstack_dns_recordset_v2", "ZONE_ID", "recordset"),
    named("OS::Designate::Zone", "openstack_dns_zone_v2", "zone"),
    named("OS::Glance::WebImage", "openstack_images_image_v2", "image"),
    named("OS::Keystone::Endpoint", "openstack_identity_endpoint_v3", "endpoint"),
    named("OS::Keystone::Group", "openstack_identity_group_v3", "group"),
    named("OS::Keystone::Project", "openstack_identity_project_v3", "project"),
    named("OS::Keystone::Role", "openstack_identity_role_v3", "role"),
    named("OS::Keystone::Service", "openstack_identity_service_v3", "service"),
    named("OS::Keystone::User", "openstack_identity_user_v3", "user"),
    named("OS::Magnum::Cluster", "openstack_containerinfra_cluster_v1", "coe cluster"),
    named("OS::Magnum::ClusterTemplate", "openstack_containerinfra_clustertemplate_v1", "coe cluster template"),
    named("OS::Manila::SecurityService", "openstack_sharedfilesystem_securityservice_v2", "share security service"),
    named("OS::Manila::Share", "openstack_sharedfilesystem_share_v2", "share"),
    named("OS::Manila::ShareNetwork", "openstack_sharedfilesystem_sharenetwork_v2", "share network"),
    named("OS::Neutron::AddressScope", "openstack_networking_addressscope_v2", "address scope"),
    named("OS::Neutron::FloatingIP", "openstack_networking_floatingip_v2", "floating ip"),
    named("OS::Neutron::Net", "openstack_networking_network_v2", "network"),
    named("OS::Neutron::Port", "openstack_networking_port_v2", "port"),
    named("OS::Neutron::ProviderNet", "openstack_networking_network_v2", "network"),
    named("OS::Neutron::QoSPolicy", "openstack_networking_qos_policy_v2", "network qos policy"),
    named("OS::Neutron::RBACPolicy", "openstack_networking_rbac_policy_v2", "network rbac"),
    named("OS::Neutron::Router", "openstack_networking_router_v2", "router"),
    named("OS::Neutron::SecurityGroup", "openstack_networking_secgroup_v2", "security group"),
    named("OS::Neutron::SecurityGroupRule", "openstack_networking_secgroup_rule_v2", "security group rule"),
    named("OS::Neutron::Subnet", "openstack_networking_subnet_v2", "subnet"),
    named("OS::Neutron::SubnetPool", "openstack_networking_subnetpool_v2", "subnet pool"),
    named("OS::Neutron::Trunk", "openstack_networking_trunk_v2", "network trunk"),
    named("OS::Nova::Flavor", "openstack_compute_flavor_v2", "flavor"),
    named("OS::Nova::HostAggregate", "openstack_compute_aggregate_v2", "aggregate"),
    named("OS::Nova::KeyPair", "openstack_compute_keypair_v2", "keypair"),
    named("OS::Nova::Server", "openstack_compute_instance_v2", "server"),
    named("OS::Nova::ServerGroup", "openstack_compute_servergroup_v2", "server group"),
    named("OS::Octavia::HealthMonitor", "openstack_lb_monitor_v2", "loadbalancer healthmonitor"),
    named("OS::Octavia::L7Policy", "openstack_lb_l7policy_v2", "loadbalancer l7policy"),
    within("OS::Octavia::L7Rule", "openstack_lb_l7rule_v2", "L7POLICY_ID", "loadbalancer l7rule"),
    named("OS::Octavia::Listener", "openstack_lb_listener_v2", "loadbalancer listener"),
    named("OS::Octavia::LoadBalancer", "openstack_lb_loadbalancer_v2", "loadbalancer"),
    named("OS::Octavia::Pool", "openstack_lb_pool_v2", "loadbalancer pool"),
    within("OS::Octavia::PoolMember", "openstack_lb_member_v2", "POOL_ID", "loadbalancer member"),
    named("OS::Swift::Container", "openstack_objectstorage_container_v1", "container"),
    named("OS::Trove::Instance", "openstack_db_instance_v1", "database instance"),
];

/// The names of a type.
pub(crate) fn names(resource_type: &str) -> Option<&'static Named> {
    NAMES.iter().find(|named| named.resource_type == resource_type)
}

/// The type of the objects of a resource of Terraform.
pub(crate) fn type_of(terraform: &str) -> Option<&'static Named> {
    NAMES.iter().find(|named| named.terraform == terraform)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_type_exists_once() {
        let types: BTreeSet<&str> = NAMES.iter().map(|named| named.resource_type).collect();
        assert_eq!(types.len(), NAMES.len());
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../resource-types");
        for name in types {
            assert!(root.join(format!("{}.yaml", name.replace("::", "/"))).exists(), "{name}");
        }
    }
}
