//! Operations of several calls: a queue of tasks that is kept in the operation's state, each task first asked for and
//! then waited for, so that any engine can go on with it.

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{Context, Failure, Step};
use kiln_value::{Map, Value, value};

/// Name of the stage in an operation's state.
pub(crate) const STAGE: &str = "queue";

/// What a task has changed about the resource.
#[derive(Default)]
pub(crate) struct Effect {
    /// The object's new id.
    pub(crate) physical_id: Option<String>,
    /// Entries of the resource's data.
    pub(crate) data: Map,
}

/// The tasks of a type. A task is a map; `do` says what it is.
#[async_trait]
pub(crate) trait Tasks: Send + Sync {
    /// Asks for a task. May be called again after a crash: must notice what is done already.
    async fn call(&self, cx: &Context<'_>, task: &Value) -> Result<Effect, Failure>;

    /// Whether a task that was asked for is done.
    async fn is_complete(&self, cx: &Context<'_>, task: &Value) -> Result<bool, Failure>;
}

/// How long to wait before the look after `looks` others: soon at first, then less often.
pub(crate) fn pace(looks: i64) -> Duration {
    let looks = u32::try_from(looks).unwrap_or(0).min(20);
    Duration::from_millis(500).mul_f64(1.2_f64.powf(f64::from(looks))).min(Duration::from_secs(5))
}

/// Waits at a stage; `looks` counts how often it was looked already.
pub(crate) fn wait(stage: &str, looks: i64) -> Step {
    Step::wait(value!({"stage": stage, "looks": looks}), pace(looks))
}

/// How often it was looked already.
pub(crate) fn looks(state: &Value) -> i64 {
    state.get("looks").and_then(Value::as_i64).unwrap_or(0)
}

/// Starts a queue; finished if it is empty.
pub(crate) fn start(tasks: Vec<Value>) -> Step {
    next(tasks, 0)
}

fn next(tasks: Vec<Value>, looks: i64) -> Step {
    if tasks.is_empty() {
        return Step::done();
    }
    let after = if looks == 0 { Duration::ZERO } else { pace(looks - 1) };
    Step::wait(value!({"stage": STAGE, "tasks": tasks, "looks": looks}), after)
}

/// Goes on with a queue.
pub(crate) async fn poll(kind: &dyn Tasks, cx: &Context<'_>, state: &Value) -> Result<Step, Failure> {
    let mut tasks = state.get("tasks").and_then(Value::as_list).unwrap_or_default().to_vec();
    let Some(task) = tasks.first().cloned() else { return Ok(Step::done()) };
    if task.get("called").is_some_and(Value::is_truthy) {
        if kind.is_complete(cx, &task).await? {
            tasks.remove(0);
            return Ok(next(tasks, 0));
        }
        return Ok(next(tasks, looks(state) + 1));
    }
    let effect = kind.call(cx, &task).await?;
    if let Some(task) = tasks.first_mut().and_then(Value::as_map_mut) {
        task.insert("called".into(), true.into());
    }
    let mut step = next(tasks, 1);
    step.physical_id = effect.physical_id;
    step.data = effect.data;
    Ok(step)
}
