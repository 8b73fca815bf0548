//! Operations with several calls: a queue of tasks in the state of the operation. Each task is requested and then
//! awaited, so that any engine can continue.

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{Context, Failure, FailureKind, Step};
use kiln_value::{Class, Map, Value, value};

/// Name of the stage in an operation's state.
pub(crate) const STAGE: &str = "queue";

/// The effect of a task on the resource.
#[derive(Default)]
pub(crate) struct Effect {
    /// The new ID of the object.
    pub(crate) physical_id: Option<String>,
    /// Entries of the resource data.
    pub(crate) data: Map,
}

/// The tasks of a type. A task is a map with its name in `do`.
#[async_trait]
pub(crate) trait Tasks: Send + Sync {
    /// Requests a task. May be called again after a crash, so it must detect completed work.
    async fn call(&self, cx: &Context<'_>, task: &Value) -> Result<Effect, Failure>;

    /// Whether a requested task is complete.
    async fn is_complete(&self, cx: &Context<'_>, task: &Value) -> Result<bool, Failure>;
}

/// The delay before the next poll after `polls` consecutive polls without a change: short at first, then longer.
pub(crate) fn pace(polls: u32) -> Duration {
    let polls = i32::try_from(polls.min(40)).unwrap_or(40);
    Duration::from_millis(500).mul_f64(1.1_f64.powi(polls)).min(Duration::from_secs(5))
}

/// Starts to wait at a stage.
pub(crate) fn wait(stage: &str) -> Step {
    Step::wait(value!({"stage": stage}), pace(0))
}

/// Continues with a stage immediately.
pub(crate) fn now(stage: &str) -> Step {
    Step::wait(value!({"stage": stage}), Duration::ZERO)
}

/// Continues to wait: the poll found no change, so there is nothing to store.
pub(crate) fn again(cx: &Context<'_>, state: &Value, what: impl Into<String>) -> Step {
    Step::wait(state.clone(), pace(cx.polls.saturating_add(1))).waits_for(what)
}

/// Releases a claimed ID before the failure is reported: a later object with this ID must not be deleted.
pub(crate) fn give_up(failure: &Failure) -> Step {
    let kind = KINDS.iter().find(|(kind, _)| *kind == failure.kind).map_or("other", |(_, word)| word);
    let state = value!({
        "stage": GIVEN_UP, "kind": kind, "class": (failure.class.name()), "message": (failure.message.as_str()),
    });
    Step::wait(state, Duration::ZERO).id("")
}

/// The failure to report after the ID is released.
pub(crate) fn given_up(state: &Value) -> Option<Failure> {
    let text = |key: &str| state.str_at(key).unwrap_or_default();
    let kind = KINDS.iter().find(|(_, word)| *word == text("kind")).map_or(FailureKind::Other, |(kind, _)| *kind);
    (text("stage") == GIVEN_UP).then(|| Failure::new(kind, Class::of(text("class").to_owned()), text("message")))
}

const GIVEN_UP: &str = "given_up";

/// The stored names of kinds of refusals.
const KINDS: [(FailureKind, &str); 3] =
    [(FailureKind::Conflict, "conflict"), (FailureKind::Refused, "refused"), (FailureKind::NotFound, "not_found")];

/// Starts a queue; complete if it is empty.
pub(crate) fn start(tasks: Vec<Value>) -> Step {
    next(tasks, Duration::ZERO)
}

fn next(tasks: Vec<Value>, after: Duration) -> Step {
    if tasks.is_empty() {
        return Step::done();
    }
    Step::wait(value!({"stage": STAGE, "tasks": tasks}), after)
}

/// Continues a queue.
pub(crate) async fn poll(kind: &dyn Tasks, cx: &Context<'_>, state: &Value) -> Result<Step, Failure> {
    let mut tasks = state.get("tasks").and_then(Value::as_list).unwrap_or_default().to_vec();
    let Some(task) = tasks.first().cloned() else { return Ok(Step::done()) };
    if task.get("called").is_some_and(Value::is_truthy) {
        if kind.is_complete(cx, &task).await? {
            tasks.remove(0);
            return Ok(start(tasks));
        }
        return Ok(again(cx, state, format!("the end of {:?}", task.str_at("do").unwrap_or_default())));
    }
    let effect = kind.call(cx, &task).await?;
    if let Some(task) = tasks.first_mut().and_then(Value::as_map_mut) {
        task.insert("called".into(), true.into());
    }
    let mut step = next(tasks, pace(0));
    step.physical_id = effect.physical_id;
    step.data = effect.data;
    Ok(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_of_polls_increase() {
        assert_eq!(pace(0), Duration::from_millis(500));
        assert!((0..30).all(|polls| pace(polls) <= pace(polls + 1)));
        assert_eq!(pace(u32::MAX), Duration::from_secs(5));
    }
}
