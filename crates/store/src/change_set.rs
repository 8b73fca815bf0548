//! Change sets of stacks.

use jiff::Timestamp;
use kiln_resource::{ChangeSetId, StackId};
use kiln_value::Value;

/// A change of a stack that a user prepares and may execute later.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeSet {
    /// Its ID.
    pub id: ChangeSetId,
    /// Project ID.
    pub project: String,
    /// The stack, which may not exist yet.
    pub stack: StackId,
    /// The name of the stack.
    pub stack_name: String,
    /// Its name, unique for the stack.
    pub name: String,
    /// The generation of the stack that it changes; 0: it creates the stack.
    pub generation: i64,
    /// Whether its execution was requested. It was executed if the stack has a higher generation.
    pub executed: bool,
    /// The request and its effect. Encrypted at rest: it contains parameters.
    pub body: Value,
    /// Time of creation.
    pub created: Timestamp,
}
