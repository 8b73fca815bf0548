//! Blueprints that a request has built, for an engine of the same process that carries it out: to build one of ten
//! thousand resources again takes a tenth of a second. Another engine builds its own from the stored texts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kiln_plan::Blueprint;
use kiln_store::{Desired, StackId};

use crate::lru::Lru;

/// Bytes of memory that are kept, by estimate.
const CAPACITY: usize = 32 << 20;
/// How long a blueprint waits for an engine; then it is dropped at the engine's next poll.
const IDLE: Duration = Duration::from_secs(5);

/// About how much more memory a blueprint takes than its template.
const BLUEPRINT: usize = 4;

/// Blueprints by what they were built from: a stack and its desired state. Times are monotonic.
pub struct Handover {
    waiting: Mutex<Lru<(StackId, Desired), Arc<Blueprint>>>,
    /// Whether the process has an engine.
    is_open: AtomicBool,
}

impl Default for Handover {
    fn default() -> Self {
        Self { waiting: Mutex::new(Lru::new(CAPACITY, IDLE)), is_open: AtomicBool::new(false) }
    }
}

impl Handover {
    fn waiting(&self) -> MutexGuard<'_, Lru<(StackId, Desired), Arc<Blueprint>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process has an engine.
    pub fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    /// Keeps the blueprint of a stack for its engine. Without an engine in the process, nothing is kept.
    pub fn put(&self, stack: StackId, desired: Desired, blueprint: Blueprint, now: Duration) {
        if !self.is_open.load(Ordering::Relaxed) {
            return;
        }
        let bytes = size_of_blueprint(&blueprint, true);
        let mut waiting = self.waiting();
        waiting.expire(now);
        waiting.put((stack, desired), Arc::new(blueprint), bytes, now);
    }

    /// The blueprint of a stack, if it was built in this process.
    pub fn take(&self, stack: StackId, desired: &Desired) -> Option<Arc<Blueprint>> {
        self.waiting().take(&(stack, desired.clone()))
    }

    /// The number of blueprints that wait, and their bytes by estimate.
    pub fn size(&self) -> (usize, usize) {
        self.waiting().size()
    }

    /// Drops what no engine has taken.
    pub fn expire(&self, now: Duration) {
        self.waiting().expire(now);
    }
}

/// About how many bytes a blueprint takes. Nested stacks have the files of their root.
pub fn size_of_blueprint(blueprint: &Blueprint, is_root: bool) -> usize {
    let sources = blueprint.sources();
    let environment = sources.environment.parameters.size() + sources.environment.parameter_defaults.size();
    let own_files = is_root.then_some(&sources.files.0);
    let files: usize = own_files.into_iter().flatten().map(|(name, text)| name.len() + text.len()).sum();
    BLUEPRINT * (sources.template.size() + environment) + files
}
