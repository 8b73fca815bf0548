//! Actions and statuses of stacks and resources.

use std::fmt;
use std::str::FromStr;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// The word that clients see.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                match word { $($word => Ok(Self::$variant),)* _ => Err(UnknownWord(word.to_owned())) }
            }
        }
    };
}

/// A word that names no action or status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord(pub String);

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown action or status {:?}", self.0)
    }
}

impl std::error::Error for UnknownWord {}

words! {
    /// What is or was done last (docs/heat-behaviour.md §1). `Init` is for resources only: nothing was done yet.
    Action {
        /// A resource that waits for its turn.
        Init = "INIT",
        /// Made.
        Create = "CREATE",
        /// Taken away.
        Delete = "DELETE",
        /// Changed.
        Update = "UPDATE",
        /// Put back.
        Rollback = "ROLLBACK",
        /// Put to sleep.
        Suspend = "SUSPEND",
        /// Woken up.
        Resume = "RESUME",
        /// Taken over.
        Adopt = "ADOPT",
        /// Saved.
        Snapshot = "SNAPSHOT",
        /// Looked at.
        Check = "CHECK",
        /// Put back to a snapshot.
        Restore = "RESTORE",
    }
}

words! {
    /// How far the action is.
    Status {
        /// Under way.
        InProgress = "IN_PROGRESS",
        /// Ended badly.
        Failed = "FAILED",
        /// Ended well.
        Complete = "COMPLETE",
    }
}

/// An action and how far it is: `CREATE_COMPLETE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The action.
    pub action: Action,
    /// How far it is.
    pub status: Status,
}

impl State {
    /// A state.
    pub const fn new(action: Action, status: Status) -> Self {
        Self { action, status }
    }

    /// Nothing was done yet.
    pub const INIT: Self = Self::new(Action::Init, Status::Complete);

    /// Whether the action failed.
    pub fn failed(self) -> bool {
        self.status == Status::Failed
    }

    /// Whether this is exactly that action, complete.
    pub fn is_complete(self, action: Action) -> bool {
        self == Self::new(action, Status::Complete)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.action, self.status)
    }
}
