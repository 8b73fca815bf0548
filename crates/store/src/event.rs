//! What happened.

use jiff::Timestamp;
use kiln_resource::{Action, Status};
use kiln_value::{Map, Value};
use uuid::Uuid;

use crate::{EventId, Stack, StackId};

/// Something that happened to a stack or to one of its resources.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its id.
    pub id: EventId,
    /// The stack.
    pub stack: StackId,
    /// The root of the stack's tree, to read the events of nested stacks in one query.
    pub root: StackId,
    /// Logical name of the resource, or the stack's name for an event of the stack itself.
    pub resource_name: String,
    /// Type of the resource; `OS::Heat::Stack` for an event of the stack itself.
    pub resource_type: String,
    /// Physical id: the object's, the stack's id, or the physical name before there is one.
    pub physical_id: Option<String>,
    /// Action; may be the pseudo action SIGNAL, hence a text.
    pub action: String,
    /// Status.
    pub status: Status,
    /// Reason.
    pub reason: String,
    /// The resource's properties then, hidden ones left out.
    pub properties: Value,
    /// When.
    pub time: Timestamp,
}

impl Event {
    /// The event of a request, with an id that follows from the stack's and the generation.
    pub(crate) fn of_start(stack: &Stack) -> Self {
        let name = format!("generation {}", stack.generation);
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
            time: stack.updated.unwrap_or(stack.created),
        }
    }

    /// Whether this is about the stack itself.
    pub fn is_of_stack(&self) -> bool {
        self.physical_id.as_deref() == Some(&self.stack.to_string())
    }

    /// The action as an event's text.
    pub fn action_of(action: Action) -> String {
        action.as_str().to_owned()
    }
}
