//! Blueprints that a request has built, for an engine of the same process that carries it out: to build one of ten
//! thousand resources again takes a tenth of a second. Another engine builds its own from the stored texts.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kiln_plan::Blueprint;
use kiln_store::{Desired, StackId};

use crate::lru::Lru;
use crate::view_cache::size_of_blueprint;

/// Bytes of memory that are kept, by estimate.
const CAPACITY: usize = 32 << 20;
/// How long a blueprint waits for an engine. Dropped at the next poll of an engine, or with the next request.
const IDLE: Duration = Duration::from_secs(5);

/// Blueprints by what they were built from: a stack and its desired state. Times are monotonic.
pub struct Handover(Mutex<Lru<(StackId, Desired), Arc<Blueprint>>>);

impl Default for Handover {
    fn default() -> Self {
        Self(Mutex::new(Lru::new(CAPACITY, IDLE)))
    }
}

impl Handover {
    /// Keeps the blueprint of a stack for its engine.
    pub fn put(&self, stack: StackId, desired: Desired, blueprint: Blueprint, now: Duration) {
        let bytes = size_of_blueprint(&blueprint, true);
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.expire(now);
        waiting.put((stack, desired), Arc::new(blueprint), bytes, now);
    }

    /// The blueprint of a stack, if it was built in this process.
    pub(crate) fn take(&self, stack: StackId, desired: &Desired) -> Option<Arc<Blueprint>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(&(stack, desired.clone()))
    }

    /// The number of blueprints that wait, and their bytes by estimate.
    pub fn size(&self) -> (usize, usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).size()
    }

    /// Drops what no engine has taken.
    pub(crate) fn expire(&self, now: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).expire(now);
    }
}
