//! OS::Octavia::*: what definitions cannot express.

mod l7;
mod listener;
mod pool;

use std::sync::Arc;

use kiln_resource::{Driver, ResourceType};

use crate::call::OCTAVIA;
use crate::quota::Quota;
use crate::rest::shaped;

/// The driver of an Octavia type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.strip_prefix("OS::Octavia::")? {
        "Listener" => shaped(resource_type, listener::Listener),
        "Pool" => shaped(resource_type, pool::Pool),
        "L7Policy" => shaped(resource_type, l7::Policy),
        "L7Rule" => shaped(resource_type, l7::Rule),
        "Quota" => {
            let limits = &["healthmonitor", "listener", "loadbalancer", "member", "pool"];
            Some(Arc::new(Quota::new(OCTAVIA, "/v2/lbaas/quotas", "quota", limits)))
        }
        _ => None,
    }
}
