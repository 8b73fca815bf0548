//! Messages to stacks: work that is not a request.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use kiln_value::Value;

use crate::{MessageId, StackId};

/// What a message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageKind {
    /// A signal to a resource.
    Signal,
    /// A resource is to be marked unhealthy.
    MarkUnhealthy,
    /// The running request is to be cancelled.
    Cancel,
    /// A time that the stack's engine set for itself has come.
    Timer,
}

impl MessageKind {
    /// Its name in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Signal => "SIGNAL",
            Self::MarkUnhealthy => "MARK_UNHEALTHY",
            Self::Cancel => "CANCEL",
            Self::Timer => "TIMER",
        }
    }
}

impl fmt::Display for MessageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no kind of message; a newer Kiln may have written it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind of message {0:?}")]
pub struct UnknownMessageKind(pub String);

impl FromStr for MessageKind {
    type Err = UnknownMessageKind;

    fn from_str(word: &str) -> Result<Self, UnknownMessageKind> {
        [Self::Signal, Self::MarkUnhealthy, Self::Cancel, Self::Timer]
            .into_iter()
            .find(|kind| kind.as_str() == word)
            .ok_or_else(|| UnknownMessageKind(word.to_owned()))
    }
}

/// A message to a stack. It wakes the stack when it is due, also a settled one, and is handled once.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its id: a message that is sent again with the same id is not stored again, even after it was handled.
    pub id: MessageId,
    /// The stack.
    pub stack: StackId,
    /// Logical name of the resource that it is for; `None`: for the stack.
    pub resource: Option<String>,
    /// What it asks for.
    pub kind: MessageKind,
    /// What goes with it.
    pub body: Value,
    /// Not to be handled before this.
    pub due: Timestamp,
    /// When it was sent.
    pub sent: Timestamp,
}

impl Message {
    /// Whether it was due as soon as it was sent.
    pub fn is_due_at_once(&self) -> bool {
        self.due <= self.sent
    }
}
