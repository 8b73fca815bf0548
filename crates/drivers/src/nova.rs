//! OS::Nova::*: the types with code.

mod flavor;
mod keypair;
mod server;
mod server_group;

use std::sync::Arc;

use kiln_resource::{Driver, ResourceType};

pub(crate) use self::server::user_data::metadata_url;
use crate::rest::{RestDriver, Shape};

/// The driver of a Nova type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.strip_prefix("OS::Nova::")? {
        "Server" => Some(Arc::new(server::Server)),
        "KeyPair" => shaped(resource_type, keypair::KeyPair),
        "ServerGroup" => {
            let mut resource_type = resource_type.clone();
            if let Some(rest) = &mut resource_type.rest {
                rest.microversion = Some(server_group::MICROVERSION.to_owned());
            }
            shaped(&resource_type, server_group::ServerGroup)
        }
        "Flavor" => shaped(resource_type, flavor::Flavor),
        _ => None,
    }
}

fn shaped(resource_type: &ResourceType, shape: impl Shape + 'static) -> Option<Arc<dyn Driver>> {
    Some(Arc::new(RestDriver::shaped(resource_type, shape)?))
}
