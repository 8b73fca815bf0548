//! Leases.

use std::time::Duration;

use jiff::Timestamp;

use crate::{EngineId, StackId};

/// An engine that has not reported for longer than a lease lives, as another engine has observed by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silent {
    /// The engine.
    pub engine: EngineId,
    /// Its last report ([`crate::EngineInfo::seen`]): a later one contradicts the observation.
    pub seen: Timestamp,
    /// How long it can have made no call.
    pub idle: Duration,
}

/// The right of one engine to work on one stack, until it is released or another engine has found that its owner is
/// [`Silent`]. Each claim increments the epoch, and writes with an old epoch are refused.
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
    /// How long the previous owner can have made no call, as far as the claiming engine has seen it.
    pub idle: Duration,
    /// The time of this claim, by the database's clock: microseconds since the epoch.
    pub at: i64,
}
