//! Typed IDs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                text.parse().map(Self)
            }
        }
    )*};
}

ids! {
    /// A stack.
    StackId
    /// A resource: one row, so a replacement has an id of its own.
    ResourceId
    /// An event.
    EventId
    /// A message to a stack.
    MessageId
    /// A snapshot of a stack.
    SnapshotId
    /// A guard.
    GuardId
    /// A saved plan.
    PlanId
    /// A webhook.
    WebhookId
    /// An operation: a request to a stack, with all that other stacks do for it.
    OperationId
    /// Stored credentials of a root stack.
    CredentialsId
    /// A running engine; new at every start.
    EngineId
}
