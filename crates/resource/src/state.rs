//! Actions and statuses of stacks and resources.

use std::fmt;

use crate::words;

words! {
    /// The last or current action (docs/heat-behaviour.md §1). `Init` is only for resources: no action was started yet.
    Action {
        /// A resource that is waiting to be created.
        Init = "INIT",
        /// Create.
        Create = "CREATE",
        /// Delete.
        Delete = "DELETE",
        /// Update.
        Update = "UPDATE",
        /// Rollback to the previous definition.
        Rollback = "ROLLBACK",
        /// Suspend.
        Suspend = "SUSPEND",
        /// Resume.
        Resume = "RESUME",
        /// Adopt an existing object.
        Adopt = "ADOPT",
        /// Create a snapshot.
        Snapshot = "SNAPSHOT",
        /// Check the object.
        Check = "CHECK",
        /// Restore from a snapshot.
        Restore = "RESTORE",
    }
}

words! {
    /// The status of an action.
    Status {
        /// In progress.
        InProgress = "IN_PROGRESS",
        /// Failed.
        Failed = "FAILED",
        /// Complete.
        Complete = "COMPLETE",
    }
}

/// An action and its status: `CREATE_COMPLETE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The action.
    pub action: Action,
    /// The status.
    pub status: Status,
}

impl State {
    /// Creates a state.
    pub const fn new(action: Action, status: Status) -> Self {
        Self { action, status }
    }

    /// No action was started yet.
    pub const INIT: Self = Self::new(Action::Init, Status::Complete);

    /// Whether the action failed.
    pub fn failed(self) -> bool {
        self.status == Status::Failed
    }

    /// Whether this action is complete.
    pub fn is_complete(self, action: Action) -> bool {
        self == Self::new(action, Status::Complete)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.action, self.status)
    }
}
