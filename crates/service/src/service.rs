//! What the use cases work with.

use std::sync::Arc;

use kiln_engine::Backends;
use kiln_identity::{Identity, Policy};

use crate::Options;

/// The use cases. Cheap to clone; one file of this crate holds the methods of one use case.
#[derive(Clone)]
pub struct Service {
    /// Behaviour.
    pub options: Options,
    /// Stacks, types, clouds, time and chance.
    pub backends: Backends,
    /// Who calls, and in whose name stacks act.
    pub identity: Arc<dyn Identity>,
    /// What callers may.
    pub policy: Arc<Policy>,
}
