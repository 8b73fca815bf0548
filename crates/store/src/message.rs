//! Messages to stacks: work that is not a request.

use jiff::Timestamp;

use crate::{MessageBody, MessageId, StackId};

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
    /// What it says.
    pub body: MessageBody,
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
