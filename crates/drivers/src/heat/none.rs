//! `OS::Heat::None` and the placeholders of obsolete types: they do nothing.

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, Step, TypeRules};
use kiln_value::Value;

/// Takes any properties, and every attribute is null.
pub(super) struct None;

impl TypeRules for None {
    fn foreseen(&self, _: &Facts, _: &str) -> Option<Value> {
        Some(Value::Null)
    }
}

#[async_trait]
impl Driver for None {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        Ok(match operation {
            // The attempt's token is as good an id as any other: a UUID that nobody else has.
            Operation::Create => Step::done().id(&cx.facts.attempt.token),
            _ => Step::done(),
        })
    }

    /// There is no object in the cloud.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    fn needs_cloud(&self) -> bool {
        false
    }
}
