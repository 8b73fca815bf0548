//! Snapshots of stacks.

use jiff::Timestamp;
use kiln_resource::{Action, SnapshotId, State};
use kiln_value::Value;

use crate::StackId;

/// The state of a stack at some time: its template, its environment, and the IDs and data of its resources. Data to
/// adopt has the same structure and is stored as a snapshot with the action ADOPT, which lists omit.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Its ID.
    pub id: SnapshotId,
    /// Its stack.
    pub stack: StackId,
    /// Its name.
    pub name: Option<String>,
    /// SNAPSHOT while it is made and afterwards, DELETE while it is deleted, ADOPT for data to adopt.
    pub state: State,
    /// The reason of the status.
    pub reason: String,
    /// The data; null until it is made. Encrypted at rest: it contains the data of drivers.
    pub data: Value,
    /// Time of creation.
    pub created: Timestamp,
}

/// The reason of a snapshot that a later request of the stack has ended.
pub(crate) const SUPERSEDED: &str = "Stack SNAPSHOT cancelled";

impl Snapshot {
    /// Whether lists contain it.
    pub fn is_listed(&self) -> bool {
        self.state.action != Action::Adopt
    }
}
