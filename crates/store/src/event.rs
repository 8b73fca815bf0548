//! What happened.

use jiff::Timestamp;
use kiln_resource::{Action, Status};
use kiln_value::Value;

use crate::{EventId, StackId};

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
    /// Whether this is about the stack itself.
    pub fn is_of_stack(&self) -> bool {
        self.physical_id.as_deref() == Some(&self.stack.to_string())
    }

    /// The action as an event's text.
    pub fn action_of(action: Action) -> String {
        action.as_str().to_owned()
    }
}
