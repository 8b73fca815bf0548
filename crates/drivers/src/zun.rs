//! OS::Zun::Container

mod container;
mod interfaces;
mod words;

use std::sync::Arc;

use kiln_resource::{Driver, ResourceType};

/// The driver of a Zun type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.as_str() {
        "OS::Zun::Container" => Some(Arc::new(container::Container::new(resource_type)?)),
        _ => None,
    }
}
