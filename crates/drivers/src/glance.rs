//! OS::Glance::*: the types with code.

mod web_image;

use std::sync::Arc;

use kiln_resource::{Driver, ResourceType};

/// The driver of a Glance type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.as_str() {
        "OS::Glance::WebImage" => Some(Arc::new(web_image::WebImage)),
        _ => None,
    }
}
