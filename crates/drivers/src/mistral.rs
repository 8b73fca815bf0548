//! OS::Mistral::*

mod cron_trigger;
mod execution;
mod external_resource;
mod workflow;

use std::sync::Arc;

use kiln_resource::{Driver, ResourceType};

use crate::rest::RestDriver;

/// The driver of a Mistral type.
pub(crate) fn driver_for(resource_type: &ResourceType) -> Option<Arc<dyn Driver>> {
    Some(match resource_type.name.as_str() {
        "OS::Mistral::CronTrigger" => Arc::new(RestDriver::shaped(resource_type, cron_trigger::CronTrigger)?),
        "OS::Mistral::ExternalResource" => Arc::new(external_resource::ExternalResource),
        "OS::Mistral::Workflow" => Arc::new(workflow::Workflow),
        _ => return None,
    })
}
