//! `OS::Heat::Delay`: waits for a time, with jitter.

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Failure, Found, Operation, Step, TypeRules};
use kiln_value::{Map, Value, number};

/// The type's driver.
pub(super) struct Delay;

/// The seconds that an action waits: the minimum and a random part of the jitter.
fn seconds(cx: &Context<'_>, action: &str) -> f64 {
    let actions = cx.facts.property("actions").as_list().unwrap_or_default();
    if !actions.contains(&action.into()) {
        return 0.0;
    }
    let number = |property: &str| number::to_f64(cx.facts.property(property)).unwrap_or(0.0);
    #[expect(clippy::cast_precision_loss, reason = "53 random bits are plenty for a jitter")]
    let chance = cx.random() as f64 / u64::MAX as f64;
    number("min_wait") + number("max_jitter") * number("jitter_multiplier") * chance
}

impl TypeRules for Delay {}

#[async_trait]
impl Driver for Delay {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        let action = match operation {
            Operation::Create => "CREATE",
            Operation::Delete => "DELETE",
            Operation::Suspend => "SUSPEND",
            Operation::Resume => "RESUME",
            Operation::Adopt => "ADOPT",
            Operation::Snapshot => "SNAPSHOT",
            Operation::Update { changed, .. } if !changed.is_empty() => return Ok(Step::replace()),
            Operation::Update { .. } | Operation::Check => return Ok(Step::done()),
        };
        self.poll(cx, operation, &Value::Float(cx.now + seconds(cx, action))).await
    }

    /// `state` is the time until which it waits.
    async fn poll(&self, cx: &Context<'_>, _: &Operation, state: &Value) -> Result<Step, Failure> {
        let left = number::to_f64(state).unwrap_or(0.0) - cx.now;
        match Duration::try_from_secs_f64(left) {
            Ok(left) if !left.is_zero() => Ok(Step::wait(state.clone(), left)),
            _ => Ok(Step::done()),
        }
    }

    /// There is no object in the cloud.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    fn needs_cloud(&self) -> bool {
        false
    }

    async fn attributes(&self, _: &Context<'_>, _: &[&str]) -> Result<Map, Failure> {
        Ok(Map::new())
    }
}
