//! OS::Mistral::CronTrigger

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Diagnostic, Map, Value, value};

use super::execution;
use crate::alike::minute;
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

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let given = cx.facts.property("workflow");
        let is_id = given.str_at("name").is_some_and(is_uuid_like);
        let name = object.get(if is_id { "workflow_id" } else { "workflow_name" }).cloned();
        let input = execution::parsed(object, "workflow_input");
        live.insert("workflow".to_owned(), value!({"name": name, "input": input}));
        if let Some(time) = live.get("first_time").and_then(Value::as_str).map(minute) {
            live.insert("first_time".to_owned(), time.into());
        }
        // Each run lowers the number.
        let [given, remaining] =
            [cx.facts.property("count"), live.get("count").unwrap_or(&Value::Null)].map(Value::as_i64);
        if object.get("updated_at").is_some_and(Value::is_truthy) && remaining < given {
            live.shift_remove("count");
        }
        Ok(())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        one_of(facts, "pattern", "first_time")
    }
}
