//! The calls that are in progress: the oldest one shows when the database does not get on.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The calls in progress by their start.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: Mutex<BTreeSet<(Instant, u64)>>,
    next: AtomicU64,
}

/// A call, which ends with this value.
pub(super) struct Call {
    calls: Arc<Calls>,
    key: (Instant, u64),
}

impl Calls {
    pub(super) fn begin(self: &Arc<Self>) -> Call {
        let key = (Instant::now(), self.next.fetch_add(1, Ordering::Relaxed));
        self.open().insert(key);
        Call { calls: Arc::clone(self), key }
    }

    /// How long the oldest call has been in progress; zero without one.
    pub(super) fn oldest(&self) -> Duration {
        self.open().first().map_or(Duration::ZERO, |(began, _)| began.elapsed())
    }

    fn open(&self) -> MutexGuard<'_, BTreeSet<(Instant, u64)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.calls.open().remove(&self.key);
    }
}
