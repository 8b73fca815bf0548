//! The right to write.

use std::time::Duration;

use crate::{EngineId, StackId};

/// The right of one engine to work on one stack. It ends when it is not renewed for the time to live, by the
/// database's clock; the epoch grows with every claim, and a write with an old one is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The stack.
    pub stack: StackId,
    /// The engine.
    pub owner: EngineId,
    /// Number of this claim.
    pub epoch: i64,
    /// Whether the owner before gave the lease back with no call under way, or there was none. A lease that ran out is
    /// not clean.
    pub clean: bool,
    /// How long before this claim the former lease had ended, by the database's clock; zero if it was given back or
    /// there was none.
    pub idle: Duration,
}
