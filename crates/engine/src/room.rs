//! The number of stacks that an engine works on at the same time (`max_stacks`).
//!
//! Only stacks with running calls or reads count. One that waits for its nested stacks, a signal or the next poll does
//! not: otherwise many such stacks would block all others, and the nested stacks that they wait for.
//!
//! If a project has its share of the room, the stacks of others come first, so that one project with thousands of
//! requests does not block others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Stacks that are in their first steps at the same time: more would fill the memory and be no faster.
const STARTING: usize = 64;

/// The room of an engine for stacks.
#[derive(Debug)]
pub(crate) struct Room {
    limit: usize,
    present: Mutex<Present>,
    /// The engine has claimed less than there may be.
    full: AtomicBool,
    freed: Notify,
    starts: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Present {
    waiting: usize,
    /// The number of stacks of each project.
    projects: BTreeMap<String, usize>,
}

impl Room {
    pub(crate) fn new(limit: usize) -> Self {
        let (full, freed) = (AtomicBool::new(false), Notify::new());
        Self { limit, present: Mutex::default(), full, freed, starts: Arc::new(Semaphore::new(STARTING)) }
    }

    /// How many stacks can be claimed beside these: no more than may start at once.
    pub(crate) fn left(&self, stacks: usize) -> usize {
        self.space(stacks).min(STARTING)
    }

    fn space(&self, stacks: usize) -> usize {
        self.limit.saturating_sub(stacks.saturating_sub(self.present().waiting))
    }

    /// The projects that have at least their share of the room.
    pub(crate) fn busy_projects(&self) -> Vec<String> {
        let present = self.present();
        let share = (self.limit / (present.projects.len() + 1)).max(1);
        present.projects.iter().filter(|(_, stacks)| **stacks >= share).map(|(project, _)| project.clone()).collect()
    }

    /// A stack of this project is present until the result is dropped.
    pub(crate) fn enter(self: &Arc<Self>, project: &str) -> Entered {
        *self.present().projects.entry(project.to_owned()).or_default() += 1;
        Entered(Arc::clone(self), project.to_owned())
    }

    /// Waits until a stack may be read. It is in its first steps until the result is dropped: until it waits for anything
    /// but the database, or has nothing left to do.
    pub(crate) async fn start(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.starts).acquire_owned().await.ok()
    }

    fn present(&self) -> MutexGuard<'_, Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There may be more work than the engine has claimed, which has these stacks: it wants to know when there is room.
    pub(crate) fn is_full(&self, stacks: usize) {
        self.full.store(true, Ordering::SeqCst);
        // There may be room since the engine has looked.
        if self.space(stacks) > 0 {
            self.freed.notify_one();
        }
    }

    /// A stack waits until the result is dropped.
    pub(crate) fn leave(self: &Arc<Self>) -> Waiting {
        self.present().waiting += 1;
        if self.full.swap(false, Ordering::SeqCst) {
            self.freed.notify_one();
        }
        Waiting(Arc::clone(self))
    }

    /// Waits until there is room again.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }
}

/// A stack that waits.
pub(crate) struct Waiting(Arc<Room>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.present().waiting -= 1;
    }
}

/// A stack of a project.
pub(crate) struct Entered(Arc<Room>, String);

impl Drop for Entered {
    fn drop(&mut self) {
        let mut present = self.0.present();
        if let Some(stacks) = present.projects.get_mut(&self.1) {
            *stacks -= 1;
            if *stacks == 0 {
                present.projects.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn no_notice_is_lost_and_a_claim_is_small() {
        let room = Arc::new(Room::new(200));
        assert_eq!(room.left(0), STARTING);
        assert_eq!(room.left(200), 0);
        // A stack begins to wait after the engine has looked, and before it says that it has no room.
        let waiting = room.leave();
        room.is_full(200);
        assert!(room.freed().now_or_never().is_some());
        drop(waiting);
        room.is_full(200);
        assert!(room.freed().now_or_never().is_none());
        let _waiting = room.leave();
        assert!(room.freed().now_or_never().is_some());
    }

    #[tokio::test]
    async fn few_stacks_start_at_the_same_time() {
        let room = Room::new(1_000);
        let mut started = Vec::new();
        for _ in 0..STARTING {
            started.push(room.start().await.expect("room"));
        }
        assert!(room.start().now_or_never().is_none(), "one more waits");
        started.pop();
        assert!(room.start().now_or_never().flatten().is_some());
    }
}
