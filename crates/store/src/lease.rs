//! Leases.

use std::time::Duration;

use crate::{EngineId, StackId};

/// The right of one engine to work on one stack. A lease expires when it is not renewed within its time to live, by the
/// database's clock. Each claim increments the epoch, and writes with an old epoch are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The stack.
    pub stack: StackId,
    /// The engine.
    pub owner: EngineId,
    /// Number of this claim.
    pub epoch: i64,
    /// Whether the previous owner released the lease with no call in progress, or there was no owner. An expired lease
    /// is not clean.
    pub clean: bool,
    /// Time between the end of the previous lease and this claim, by the database's clock; zero if it was released or
    /// there was none.
    pub idle: Duration,
    /// The time of this claim, by the database's clock: microseconds since the epoch.
    pub at: i64,
}
