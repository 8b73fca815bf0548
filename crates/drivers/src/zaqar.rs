//! OS::Zaqar::*: queues, subscriptions and signed URLs.

mod queue_resource;
mod signed_url;
mod subscription;
pub(crate) mod user_queue;

use std::sync::Arc;

use kiln_resource::{Driver, ResourceType};

use crate::rest::shaped;

/// The driver of a Zaqar type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    match resource_type.name.strip_prefix("OS::Zaqar::")? {
        "Queue" => Some(Arc::new(queue_resource::Queue)),
        "SignedQueueURL" => Some(Arc::new(signed_url::SignedQueueUrl)),
        "Subscription" => shaped(resource_type, subscription::Subscription),
        "MistralTrigger" => shaped(resource_type, subscription::MistralTrigger),
        _ => None,
    }
}
