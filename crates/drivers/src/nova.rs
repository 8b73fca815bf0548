//! OS::Nova::*: the types with code.

mod flavor;
mod floating_ip;
mod host_aggregate;
mod keypair;
mod server;
mod server_group;

use std::sync::Arc;

use kiln_resource::{Driver, ResourceType};

pub(crate) use self::server::user_data::metadata_url;
use crate::call::{NEUTRON, NOVA};
use crate::quota::Quota;
use crate::rest::{RestDriver, shaped};

pub(crate) use server::Server;

/// The limits of OS::Nova::Quota.
const LIMITS: &[&str] = &[
    "cores",
    "fixed_ips",
    "floating_ips",
    "injected_file_content_bytes",
    "injected_file_path_bytes",
    "injected_files",
    "instances",
    "key_pairs",
    "metadata_items",
    "ram",
    "security_group_rules",
    "security_groups",
    "server_group_members",
    "server_groups",
];

/// The driver of a Nova type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.strip_prefix("OS::Nova::")? {
        "Server" => Some(Arc::new(Server)),
        "KeyPair" => shaped(resource_type, keypair::KeyPair),
        "ServerGroup" => {
            let mut resource_type = resource_type.clone();
            if let Some(rest) = &mut resource_type.rest {
                rest.microversion = Some(server_group::MICROVERSION.to_owned());
            }
            shaped(&resource_type, server_group::ServerGroup)
        }
        "Flavor" => shaped(resource_type, flavor::Flavor),
        "FloatingIP" => {
            let mut resource_type = resource_type.clone();
            resource_type.service = vec![NEUTRON.0.to_owned()];
            Some(Arc::new(RestDriver::shaped(&resource_type, floating_ip::FloatingIp)?.unshown()))
        }
        "FloatingIPAssociation" => Some(Arc::new(floating_ip::FloatingIpAssociation)),
        "HostAggregate" => shaped(resource_type, host_aggregate::HostAggregate),
        "Quota" => Some(Arc::new(Quota::new(NOVA, "/os-quota-sets", "quota_set", LIMITS))),
        _ => None,
    }
}
