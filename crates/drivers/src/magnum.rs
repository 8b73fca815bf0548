//! OS::Magnum::Cluster

use std::sync::Arc;

use async_trait::async_trait;
use kiln_resource::{Driver, Facts, ResourceType};
use kiln_value::Value;

use crate::rest::{Shape, shaped};

/// The driver of a Magnum type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.as_str() {
        "OS::Magnum::Cluster" => shaped(resource_type, Cluster),
        _ => None,
    }
}

/// A cluster of containers.
struct Cluster;

#[async_trait]
impl Shape for Cluster {
    fn reason(&self, facts: &Facts, object: &Value) -> Option<String> {
        let what = match object.str_at("status") {
            Some("UPDATE_FAILED") => "update",
            Some("DELETE_FAILED") => "delete",
            _ => "create",
        };
        let reason = kiln_value::text::str(object.get("status_reason").unwrap_or(&Value::Null));
        Some(format!("Failed to {what} Cluster '{}' - {reason}", facts.name))
    }
}
