//! OS::Keystone::*: the types with code.

mod project;

use std::sync::Arc;

use kiln_resource::{Driver, ResourceType};

use crate::rest::RestDriver;

/// The driver of a Keystone type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.as_str() {
        "OS::Keystone::Project" => Some(Arc::new(RestDriver::shaped(resource_type, project::Project)?)),
        _ => None,
    }
}
