//! The right to write.

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
}
