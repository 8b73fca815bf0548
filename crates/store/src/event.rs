//! Events.

use jiff::Timestamp;
use kiln_resource::{Action, Status};
use kiln_value::{Map, Value};
use uuid::Uuid;

use crate::{EventId, OperationId, Stack, StackId};

/// An event of a stack or one of its resources.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its ID.
    pub id: EventId,
    /// The stack.
    pub stack: StackId,
    /// The root stack, to read the events of nested stacks in one query.
    pub root: StackId,
    /// Logical name of the resource, or the stack's name for an event of the stack itself.
    pub resource_name: String,
    /// Type of the resource; `OS::Heat::Stack` for an event of the stack itself.
    pub resource_type: String,
    /// Physical ID: of the object or the stack, or the physical name before the object exists.
    pub physical_id: Option<String>,
    /// Action; a string because it may be the pseudo action SIGNAL.
    pub action: String,
    /// Status.
    pub status: Status,
    /// Reason.
    pub reason: String,
    /// The properties of the resource at that time, without hidden ones.
    pub properties: Value,
    /// The operation that it belongs to; `None`: nothing was requested, as with a signal, or it is older than operations.
    pub operation: Option<OperationId>,
    /// Time of the event.
    pub time: Timestamp,
}

impl Event {
    /// The start event of a request. Its ID is derived from the stack and the generation.
    pub(crate) fn of_start(stack: &Stack) -> Self {
        Self::of_state(stack, "generation")
    }

    /// The event of a request that has ended with its start.
    pub(crate) fn of_end(stack: &Stack) -> Self {
        Self::of_state(stack, "end of generation")
    }

    /// The state of a stack. `what` tells the events of one request apart.
    fn of_state(stack: &Stack, what: &str) -> Self {
        let name = format!("{what} {}", stack.generation);
        Self {
            id: EventId(Uuid::new_v5(&stack.id.0, name.as_bytes())),
            stack: stack.id,
            root: stack.root,
            resource_name: stack.name.clone(),
            resource_type: "OS::Heat::Stack".to_owned(),
            physical_id: Some(stack.id.to_string()),
            action: Self::action_of(stack.state.action),
            status: stack.state.status,
            reason: stack.reason.clone(),
            properties: Value::Map(Map::new()),
            operation: Some(stack.operation()),
            time: stack.updated.unwrap_or(stack.created),
        }
    }

    /// Whether the event is about the stack itself.
    pub fn is_of_stack(&self) -> bool {
        self.physical_id.as_deref() == Some(&self.stack.to_string())
    }

    /// The action as a string for events.
    pub fn action_of(action: Action) -> String {
        action.as_str().to_owned()
    }
}
