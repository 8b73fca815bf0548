//! Messages to stacks: work that is not a request.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use kiln_value::Value;

use crate::{MessageId, StackId};

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageKind {
    /// A signal to a resource.
    Signal,
    /// A signal that was refused because of the action of the resource, for the event about it.
    RefusedSignal,
    /// A request to mark a resource unhealthy.
    MarkUnhealthy,
    /// A request to cancel the running operation.
    Cancel,
    /// A group is changing its size: the engine records the end.
    Scaling,
    /// The members of a group, for its load balancer.
    Members,
    /// A request to clear a hook of a resource.
    ClearHook,
    /// A request to delete a snapshot.
    DeleteSnapshot,
    /// A request to forget a resource that cannot be deleted.
    Forget,
    /// A timer that the engine of the stack has set.
    Timer,
}

impl MessageKind {
    /// All kinds that this version knows. A stack is not due for a message of another kind.
    pub const ALL: [Self; 10] = [
        Self::Signal,
        Self::RefusedSignal,
        Self::MarkUnhealthy,
        Self::Cancel,
        Self::Scaling,
        Self::Members,
        Self::ClearHook,
        Self::DeleteSnapshot,
        Self::Forget,
        Self::Timer,
    ];

    /// Its name in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Signal => "SIGNAL",
            Self::RefusedSignal => "REFUSED_SIGNAL",
            Self::MarkUnhealthy => "MARK_UNHEALTHY",
            Self::Cancel => "CANCEL",
            Self::Scaling => "SCALING",
            Self::Members => "MEMBERS",
            Self::ClearHook => "CLEAR_HOOK",
            Self::DeleteSnapshot => "DELETE_SNAPSHOT",
            Self::Forget => "FORGET",
            Self::Timer => "TIMER",
        }
    }
}

impl fmt::Display for MessageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An unknown kind of message; a newer version of Kiln may have written it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind of message {0:?}")]
pub struct UnknownMessageKind(pub String);

impl FromStr for MessageKind {
    type Err = UnknownMessageKind;

    fn from_str(word: &str) -> Result<Self, UnknownMessageKind> {
        let kind = Self::ALL.into_iter().find(|kind| kind.as_str() == word);
        kind.ok_or_else(|| UnknownMessageKind(word.to_owned()))
    }
}

/// The messages of a stack that are not handled yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Their number.
    pub messages: u64,
    /// The size of their bodies; zero unless it was asked for.
    pub bytes: u64,
}

/// A message to a stack. When it is due, it wakes the stack, even a settled one. It is handled once.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its ID. A message with the ID of a stored message is not stored again, even after that one was handled.
    pub id: MessageId,
    /// The stack.
    pub stack: StackId,
    /// Logical name of the target resource; `None`: the stack.
    pub resource: Option<String>,
    /// Its kind.
    pub kind: MessageKind,
    /// Its data.
    pub body: Value,
    /// The earliest time to handle it.
    pub due: Timestamp,
    /// The time when it was sent.
    pub sent: Timestamp,
}

impl Message {
    /// Whether it was due immediately when it was sent.
    pub fn is_due_at_once(&self) -> bool {
        self.due <= self.sent
    }
}
