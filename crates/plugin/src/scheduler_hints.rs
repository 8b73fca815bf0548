//! Hints for the schedulers that a plug-in changes.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_resource::{Context, Failure, SchedulerHints};
use kiln_value::{Map, value};

use crate::access::call_with_access;
use crate::answer;
use crate::call::CallError;
use crate::driver::{entries, stack_value};
use crate::plugin::Plugin;

const METHOD: &str = "scheduler_hints";

/// Lets a plug-in change the hints of a resource.
pub(crate) struct PluginHints(pub(crate) Arc<Plugin>);

#[async_trait]
impl SchedulerHints for PluginHints {
    async fn changed(&self, cx: &Context<'_>, hints: Map) -> Result<Map, Failure> {
        let facts = cx.facts;
        let params = entries(value!({
            "type": (facts.resource_type.as_str()),
            "resource": {
                "name": (facts.name.as_str()), "physical_name": (facts.physical_name.as_str()),
                "properties": (facts.properties.clone()),
            },
            "stack": (stack_value(facts)),
            "hints": hints,
        }));
        let result = call_with_access(&self.0, &facts.stack.project_id, cx.cloud, METHOD, &params).await?;
        answer::hints(result).map_err(|why| CallError::Broken(why).failure(&self.0.name, METHOD))
    }
}
