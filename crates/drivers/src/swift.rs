//! OS::Swift::*

mod container;
pub(crate) mod object;
pub mod temp_url;

use std::sync::Arc;

use kiln_resource::{Driver, ResourceType};

/// The driver of a Swift type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.as_str() {
        "OS::Swift::Container" => Some(Arc::new(container::Container)),
        _ => None,
    }
}
