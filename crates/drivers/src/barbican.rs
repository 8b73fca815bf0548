//! OS::Barbican::*: secrets, orders and containers. Their IDs are URLs.

mod container;
mod order;
mod secret;

use std::sync::Arc;

use kiln_resource::{Driver, ResourceType};

use crate::rest::shaped;
use container::Container;

/// The driver of a Barbican type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.strip_prefix("OS::Barbican::")? {
        "Secret" => shaped(resource_type, secret::Secret),
        "Order" => shaped(resource_type, order::Order),
        "GenericContainer" => shaped(resource_type, Container("generic")),
        "CertificateContainer" => shaped(resource_type, Container("certificate")),
        "RSAContainer" => shaped(resource_type, Container("rsa")),
        _ => None,
    }
}
