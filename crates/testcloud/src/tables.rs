//! The tables of the cloud, by the type of their objects.

use crate::state::CloudState;
use crate::table::Table;

/// Lists the tables once, for reading and for restoring.
macro_rules! tables {
    ($($name:literal => $service:ident.$table:ident,)*) => {
        impl CloudState {
            /// All tables.
            pub(crate) fn tables(&self) -> Vec<(&'static str, &Table)> {
                vec![$(($name, &self.$service.$table)),*]
            }

            /// All tables, to be filled.
            pub(crate) fn tables_mut(&mut self) -> Vec<(&'static str, &mut Table)> {
                vec![$(($name, &mut self.$service.$table)),*]
            }
        }
    };
}

tables! {
    "projects" => keystone.projects,
    "users" => keystone.users,
    "roles" => keystone.roles,
    "domains" => keystone.domains,
    "regions" => keystone.regions,
    "services" => keystone.services,
    "endpoints" => keystone.endpoints,
    "trusts" => keystone.trusts,
    "application_credentials" => keystone.credentials,
    "servers" => nova.servers,
    "keypairs" => nova.keypairs,
    "server_groups" => nova.groups,
    "flavors" => nova.flavors,
    "networks" => neutron.networks,
    "subnets" => neutron.subnets,
    "ports" => neutron.ports,
    "routers" => neutron.routers,
    "floatingips" => neutron.floating_ips,
    "security_groups" => neutron.groups,
    "security_group_rules" => neutron.rules,
    "qos_policies" => neutron.qos_policies,
    "plain_nouns" => neutron.plain,
    "volumes" => cinder.volumes,
    "snapshots" => cinder.snapshots,
    "backups" => cinder.backups,
    "volume_types" => cinder.types,
    "volume_attachments" => cinder.attachments,
    "images" => glance.images,
    "nouns" => nouns.rows,
}
