//! What clients have just read of stacks. Clients that follow a stack ask for the same again and again, and reading the
//! rows of a stack takes longer than all the rest of such a request.
//!
//! Only the batches of a stack's engine write rows of its resources, and their events. So what was read is current while
//! the number of batches is the same, which every request reads with the row of the stack.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kiln_stack::lru::Lru;
use kiln_store::{Desired, Stack, StackId};

/// Bytes of memory that are kept, by estimate.
const CAPACITY: usize = 16 << 20;
/// How long something unused is kept.
pub(crate) const IDLE: Duration = Duration::from_secs(30);
/// How long something is kept that is used: old events are deleted without a batch.
const AGE: Duration = Duration::from_mins(1);

/// What the content of a stack depends on. The names of a stack and of its project never change.
#[derive(Clone, PartialEq)]
struct Version {
    writes: i64,
    desired: Desired,
    /// In a rollback, other rows are shown.
    rollback: Option<i64>,
}

impl Version {
    /// The version of a stack whose content may be kept.
    fn of(stack: &Stack) -> Option<Self> {
        // The rows of a stack that is being changed are soon others.
        (!stack.is_pending()).then(|| Self {
            writes: stack.writes,
            desired: stack.desired.clone(),
            rollback: stack.rollback(),
        })
    }
}

#[derive(Clone)]
struct Kept<T> {
    version: Version,
    since: Duration,
    value: T,
}

/// Keeps what was read last of stacks, up to a size. Times are monotonic.
pub struct StackCache<T>(Mutex<Lru<(StackId, String), Kept<T>>>);

impl<T: Clone> Default for StackCache<T> {
    fn default() -> Self {
        Self::of_size(CAPACITY)
    }
}

impl<T: Clone> StackCache<T> {
    /// At most this many bytes, by estimate.
    pub(crate) fn of_size(bytes: usize) -> Self {
        Self(Mutex::new(Lru::new(bytes, IDLE)))
    }

    /// What was read of a stack, if it is current. `what` names it among what is kept of this stack.
    pub fn get(&self, stack: &Stack, what: &str, now: Duration) -> Option<T> {
        let version = Version::of(stack)?;
        let kept = self.lru().get(&(stack.id, what.to_owned()), now)?;
        (kept.version == version && now.saturating_sub(kept.since) <= AGE).then_some(kept.value)
    }

    /// Keeps what was read after the row of the stack.
    pub fn put(&self, stack: &Stack, what: &str, value: T, bytes: usize, now: Duration) {
        let Some(version) = Version::of(stack) else { return };
        let key = (stack.id, what.to_owned());
        let bytes = size_of::<(StackId, String, Kept<T>)>() + what.len() + bytes;
        let mut lru = self.lru();
        lru.put(key, Kept { version, since: now, value }, bytes, now);
        lru.expire(now);
    }

    /// The number of entries, and their bytes by estimate.
    pub fn size(&self) -> (usize, usize) {
        self.lru().size()
    }

    /// Drops what has not been used for a while.
    pub(crate) fn expire(&self, now: Duration) {
        self.lru().expire(now);
    }

    fn lru(&self) -> MutexGuard<'_, Lru<(StackId, String), Kept<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
