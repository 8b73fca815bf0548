//! `OS::Heat::TestResource`: creates nothing, but waits, fails and requires replacements as configured.
//!
//! Options that only consume resources in Heat are not implemented: polling a client's entity, waiting for attributes
//! and constraints.

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Failure, Found, Operation, PropertyChange, Step, TypeRules};
use kiln_value::{Class, Map, Value, number, value};

/// Between two looks at a wait without end.
const IDLE: Duration = Duration::from_mins(1);

/// The type's driver.
pub(super) struct TestResource;

fn is_set(cx: &Context<'_>, property: &str) -> bool {
    cx.facts.property(property).is_truthy()
}

/// Seconds to wait; negative for ever.
fn wait_seconds(cx: &Context<'_>, action: &str) -> f64 {
    let own = cx.facts.property("action_wait_secs").get(action).filter(|secs| !secs.is_null());
    number::to_f64(own.unwrap_or_else(|| cx.facts.property("wait_secs"))).unwrap_or(0.0)
}

/// What comes after the wait that `state` remembers.
fn go_on(cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
    let at = |key: &str| state.get(key).and_then(number::to_f64).unwrap_or(0.0);
    let seconds = at("seconds");
    let left = at("started") + seconds - cx.now;
    if seconds < 0.0 {
        return Ok(Step::wait(state.clone(), IDLE));
    }
    if left > 0.0 {
        // The clock may be corrected while it waits.
        return Ok(Step::wait(state.clone(), Duration::try_from_secs_f64(left).unwrap_or(IDLE).min(IDLE)));
    }
    if is_set(cx, "fail") && *operation != Operation::Delete {
        return Err(Failure::other(Class::ValueError, format!("Test Resource failed {}", cx.facts.name)));
    }
    Ok(Step::done())
}

impl TypeRules for TestResource {
    /// `update_replace` counts only where the value changes.
    fn needs_replace(&self, change: &PropertyChange) -> bool {
        change.changed.iter().any(|name| name == "value")
            && change.after.get("update_replace").is_some_and(Value::is_truthy)
    }
}

#[async_trait]
impl Driver for TestResource {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        let fails = is_set(cx, "fail");
        let mut step = Step::done();
        let seconds = match operation {
            Operation::Create => {
                if !fails {
                    step = step.id(&cx.facts.physical_name).data("value", cx.facts.property("value"));
                }
                wait_seconds(cx, "create")
            }
            Operation::Update { changed, .. } => match changed.get("value").filter(|value| value.is_truthy()) {
                Some(value) => {
                    if !fails {
                        step = step.data("value", value);
                    }
                    wait_seconds(cx, "update")
                }
                None => 0.0,
            },
            Operation::Delete => wait_seconds(cx, "delete"),
            Operation::Check if cx.facts.physical_id.is_none() => {
                return Err(Failure::other(Class::Exception, "Resource not created"));
            }
            _ => return Ok(step),
        };
        let state = value!({"started": (cx.now), "seconds": seconds});
        let next = go_on(cx, operation, &state)?;
        step.progress = next.progress;
        Ok(step)
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        go_on(cx, operation, state)
    }

    /// There is no object in the cloud.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    fn needs_cloud(&self) -> bool {
        false
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let output = cx.facts.data.get("value").cloned().unwrap_or_default();
        Ok(names.iter().filter(|name| **name == "output").map(|name| ((*name).to_owned(), output.clone())).collect())
    }
}
