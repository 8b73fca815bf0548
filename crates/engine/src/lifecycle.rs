//! Lifecycle plug-ins: programs of the operator that run before and after each operation of a stack.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{Action, State, Status};
use kiln_store::{PluginRun, Stack};
use kiln_value::{Value, value};
use uuid::Uuid;

/// A lifecycle plug-in.
#[async_trait]
pub trait LifecyclePlugin: Send + Sync {
    /// Its name in reasons and logs.
    fn name(&self) -> &str;
    /// The maximum duration of a run.
    fn limit(&self) -> Duration;
    /// Runs it with a document. The error is a text for users.
    async fn run(&self, document: &Value) -> Result<(), String>;
}

/// The plug-ins in their order.
#[derive(Clone, Default)]
pub(crate) struct Plugins(Arc<[Arc<dyn LifecyclePlugin>]>);

impl Plugins {
    pub(crate) fn new(plugins: Vec<Arc<dyn LifecyclePlugin>>) -> Self {
        Self(plugins.into())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The maximum duration of a run of all of them.
    pub(crate) fn limit(&self) -> Duration {
        self.0.iter().map(|plugin| plugin.limit()).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn LifecyclePlugin>> {
        self.0.iter()
    }

    /// A run of the first `count` of them after an operation; `None` if there is none to run.
    pub(crate) fn run_after(count: usize, stack: &Stack, state: State, reason: &str) -> Option<PluginRun> {
        let body = value!({"plugins": count, "document": (document(stack, "after", state, reason))});
        (count > 0).then(|| PluginRun { id: work_id(stack, state.action), body })
    }

    /// Runs them after an operation. Errors are only logged, and the others run anyway.
    pub(crate) async fn after(&self, run: &Value) {
        let count = run.get("plugins").and_then(Value::as_i64).and_then(|count| usize::try_from(count).ok());
        let Some(document) = run.get("document") else { return };
        for plugin in self.0.iter().take(count.unwrap_or_default()) {
            if let Err(error) = plugin.run(document).await {
                let operation = document.str_at("operation");
                tracing::warn!(
                    plugin = plugin.name(),
                    operation,
                    error,
                    "a lifecycle plug-in failed after an operation"
                );
            }
        }
    }
}

/// The ID of the work on one stack for a request: the same before and after it, and for every engine. Unlike the ID of the
/// operation, each nested stack has its own.
pub(crate) fn work_id(stack: &Stack, action: Action) -> Uuid {
    Uuid::new_v5(&stack.id.0, format!("operation {} {action}", stack.generation).as_bytes())
}

/// What a plug-in is told before the current operation.
pub(crate) fn before(stack: &Stack) -> Value {
    document(stack, "before", stack.state, &stack.reason)
}

/// What a plug-in is told.
fn document(stack: &Stack, phase: &str, state: State, reason: &str) -> Value {
    let mut document = value!({
        "phase": phase,
        "operation": (work_id(stack, state.action).to_string()),
        "action": (state.action.as_str()),
        "stack": {
            "id": (stack.id.to_string()),
            "name": (stack.name.clone()),
            "parent_id": (stack.parent.as_ref().map(|parent| parent.stack.to_string())),
            "root_id": (stack.root.to_string()),
            "project_id": (stack.project.clone()),
            "user_id": (stack.user_id.clone()),
            "username": (stack.username.clone()),
            "tags": (stack.tags.clone()),
            "status": (state.to_string()),
            "reason": reason,
        },
    });
    if let (true, Some(document)) = (phase == "after", document.as_map_mut()) {
        document.insert("failed".to_owned(), (state.status == Status::Failed).into());
    }
    document
}
