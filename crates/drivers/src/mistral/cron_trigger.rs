//! OS::Mistral::CronTrigger

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Diagnostic, Map};

use crate::call::is_uuid_like;
use crate::rest::Shape;
use crate::validation::one_of;

/// A trigger that starts a workflow at times. Its ID is its name.
pub(super) struct CronTrigger;

#[async_trait]
impl Shape for CronTrigger {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        let workflow = cx.facts.property("workflow");
        let name = workflow.str_at("name").unwrap_or_default();
        let key = if is_uuid_like(name) { "workflow_id" } else { "workflow_name" };
        body.insert(key.to_owned(), name.into());
        if let Some(input) = workflow.get("input").filter(|input| input.is_truthy()) {
            body.insert("workflow_input".to_owned(), kiln_value::text::json(input).into());
        }
        Ok(())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        one_of(facts, "pattern", "first_time")
    }
}
