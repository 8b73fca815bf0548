//! Notifications that a stack may have work or news.
//!
//! Within a process, every [`Doorbell`] receives every ring. The database carries rings to other processes
//! (`sql/wires.rs`); while it cannot, waiters poll.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::{Doorbell, StackId};

/// Maximum wait while rings of other processes may be missed.
const PATIENCE: Duration = Duration::from_millis(500);
/// Maximum wait for news of a database that others write to: if their commit is slow, nobody rings for its events.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// Maximum number of queued rings per waiter; beyond it the waiter must look at everything.
const MAX_RINGS: usize = 10_000;

/// Who else writes to the database.
#[derive(Debug)]
pub(crate) enum Reach {
    /// Nobody: the database belongs to this process.
    Alone,
    /// Other processes, whose rings are received while `listening` is true.
    Carried { listening: AtomicBool, outbound: UnboundedSender<StackId> },
}

/// Distributes rings.
#[derive(Debug)]
pub(crate) struct Hub {
    listeners: Mutex<Vec<Weak<Bell>>>,
    reach: Reach,
    /// Notifies that there is a listener.
    listened: Notify,
    /// Who waits for events.
    watchers: Mutex<Vec<Weak<Bell>>>,
    /// Notifies that there is a watcher.
    watched: Notify,
    /// Whether the events of other processes are read, if there are any.
    tailed: AtomicBool,
    /// Changes when entries of the outbox were written.
    outbox: watch::Sender<()>,
}

impl Hub {
    pub(crate) fn new(reach: Reach) -> Arc<Self> {
        let tailed = AtomicBool::new(matches!(reach, Reach::Alone));
        Arc::new(Self {
            listeners: Mutex::default(),
            reach,
            listened: Notify::new(),
            watchers: Mutex::default(),
            watched: Notify::new(),
            tailed,
            outbox: watch::Sender::new(()),
        })
    }

    /// Creates a bell for a waiter.
    pub(crate) fn bell(self: &Arc<Self>) -> Arc<Bell> {
        let bell = Arc::new(Bell::new(self, Audience::Work));
        self.listeners().push(Arc::downgrade(&bell));
        self.listened.notify_one();
        bell
    }

    /// Creates a bell for a waiter for events: it rings with the root stacks of new events only.
    pub(crate) fn news(self: &Arc<Self>) -> Arc<Bell> {
        let bell = Arc::new(Bell::new(self, Audience::News));
        self.watchers().push(Arc::downgrade(&bell));
        self.watched.notify_one();
        bell
    }

    /// For couriers: changes when this process has written entries of the outbox.
    pub(crate) fn outbox(&self) -> watch::Receiver<()> {
        self.outbox.subscribe()
    }

    /// Tells the couriers of this process about new entries of the outbox.
    pub(crate) fn posted(&self) {
        self.outbox.send_replace(());
    }

    fn watchers(&self) -> MutexGuard<'_, Vec<Weak<Bell>>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anybody in this process waits for events.
    pub(crate) fn is_watched(&self) -> bool {
        self.watchers().iter().any(|watcher| watcher.strong_count() > 0)
    }

    /// Waits until somebody in this process waits for events. Only one task waits.
    pub(crate) async fn watched(&self) {
        while !self.is_watched() {
            self.watched.notified().await;
        }
    }

    /// Tells the watchers of this process about new events of a tree of stacks; `None` means everything.
    pub(crate) fn tell(&self, root: Option<StackId>) {
        self.watchers().retain(|watcher| {
            let Some(bell) = watcher.upgrade() else { return false };
            bell.receive(root);
            true
        });
    }

    pub(crate) fn set_tailed(&self, now: bool) {
        self.tailed.store(now, Ordering::Relaxed);
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Weak<Bell>>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anybody in this process listens.
    pub(crate) fn is_listened(&self) -> bool {
        self.listeners().iter().any(|listener| listener.strong_count() > 0)
    }

    /// Waits until somebody in this process listens. Only one task waits.
    pub(crate) async fn listened(&self) {
        while !self.is_listened() {
            self.listened.notified().await;
        }
    }

    /// Rings in this process and in others.
    pub(crate) fn ring(&self, stack: StackId) {
        self.ring_here(Some(stack));
        if let Reach::Carried { outbound, .. } = &self.reach {
            // This fails only while the store is being closed.
            let _ = outbound.send(stack);
        }
    }

    /// Rings in this process; `None` means everything.
    pub(crate) fn ring_here(&self, stack: Option<StackId>) {
        self.listeners().retain(|listener| {
            let Some(bell) = listener.upgrade() else { return false };
            bell.receive(stack);
            true
        });
    }

    fn patience(&self, audience: Audience) -> Option<Duration> {
        match &self.reach {
            Reach::Carried { .. } if audience == Audience::News => {
                Some(if self.tailed.load(Ordering::Relaxed) { LOOK_AGAIN } else { PATIENCE })
            }
            Reach::Carried { listening, .. } if !listening.load(Ordering::Relaxed) => Some(PATIENCE),
            // Rings may be lost, so engines also poll for work and news.
            Reach::Alone | Reach::Carried { .. } => None,
        }
    }

    pub(crate) fn set_listening(&self, now: bool) {
        if let Reach::Carried { listening, .. } = &self.reach {
            listening.store(now, Ordering::Relaxed);
        }
    }
}

#[derive(Debug)]
struct Rings {
    stacks: BTreeSet<StackId>,
    /// Whether to look at everything.
    all: bool,
    /// The last look at everything.
    looked: Instant,
}

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    /// Work.
    Work,
    /// Events.
    News,
}

/// The bell of one waiter.
#[derive(Debug)]
pub(crate) struct Bell {
    hub: Arc<Hub>,
    audience: Audience,
    rings: Mutex<Rings>,
    notify: Notify,
}

impl Bell {
    fn new(hub: &Arc<Hub>, audience: Audience) -> Self {
        let rings = Rings { stacks: BTreeSet::new(), all: false, looked: Instant::now() };
        Self { hub: Arc::clone(hub), audience, rings: Mutex::new(rings), notify: Notify::new() }
    }

    fn rings(&self) -> MutexGuard<'_, Rings> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive(&self, stack: Option<StackId>) {
        {
            let mut rings = self.rings();
            match stack {
                Some(stack) if rings.stacks.len() < MAX_RINGS => {
                    rings.stacks.insert(stack);
                }
                _ => rings.all = true,
            }
        }
        self.notify.notify_one();
    }

    fn take(&self) -> Option<Vec<StackId>> {
        let mut rings = self.rings();
        let stacks = std::mem::take(&mut rings.stacks);
        if std::mem::take(&mut rings.all) {
            rings.looked = Instant::now();
            return Some(Vec::new());
        }
        (!stacks.is_empty()).then(|| stacks.into_iter().collect())
    }
}

#[async_trait]
impl Doorbell for Bell {
    fn ring(&self, stack: StackId) {
        self.hub.ring(stack);
    }

    async fn wait(&self) -> Vec<StackId> {
        loop {
            let patience = self.hub.patience(self.audience);
            // Also if it rings all the time: what was not rung for is found by a look at everything.
            let due = patience.map(|patience| self.rings().looked + patience);
            if due.is_some_and(|due| due <= Instant::now()) {
                self.rings().all = true;
            }
            if let Some(rung) = self.take() {
                tracing::trace!(target: "kiln::metric", metric = "doorbells");
                return rung;
            }
            match due {
                None => self.notify.notified().await,
                Some(due) => _ = tokio::time::timeout_at(due, self.notify.notified()).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn stack(number: u128) -> StackId {
        StackId(Uuid::from_u128(number))
    }

    #[tokio::test]
    async fn rings_are_coalesced_and_reach_everyone() {
        let hub = Hub::new(Reach::Alone);
        let (one, other) = (hub.bell(), hub.bell());
        for number in [2, 1, 2] {
            one.ring(stack(number));
        }
        assert_eq!(one.wait().await, [stack(1), stack(2)]);
        assert_eq!(other.wait().await, [stack(1), stack(2)]);
        let early = tokio::time::timeout(Duration::from_millis(30), one.wait()).await;
        assert!(early.is_err(), "nobody rang");
        other.ring(stack(3));
        assert_eq!(one.wait().await, [stack(3)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_shared_database_is_looked_at_while_others_are_not_heard() {
        let outbound = tokio::sync::mpsc::unbounded_channel().0;
        let hub = Hub::new(Reach::Carried { listening: AtomicBool::new(false), outbound });
        let bell = hub.bell();
        let before = tokio::time::Instant::now();
        assert!(bell.wait().await.is_empty());
        assert_eq!(before.elapsed(), PATIENCE);
        hub.set_listening(true);
        assert!(tokio::time::timeout(Duration::from_hours(1), bell.wait()).await.is_err(), "nobody rang");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watcher_that_is_rung_all_the_time_also_looks_at_everything() {
        let outbound = tokio::sync::mpsc::unbounded_channel().0;
        let hub = Hub::new(Reach::Carried { listening: AtomicBool::new(true), outbound });
        hub.set_tailed(true);
        let news = hub.news();
        let mut looks = 0;
        for number in 0..25 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            hub.tell(Some(stack(number)));
            looks += usize::from(news.wait().await.is_empty());
        }
        assert_eq!(looks, 2);
    }

    #[tokio::test]
    async fn watchers_hear_of_events_only() {
        let hub = Hub::new(Reach::Alone);
        assert!(!hub.is_watched());
        let (work, news) = (hub.bell(), hub.news());
        assert!(hub.is_watched());
        hub.ring(stack(1));
        hub.tell(Some(stack(2)));
        assert_eq!(work.wait().await, [stack(1)]);
        assert_eq!(news.wait().await, [stack(2)]);
        let more = tokio::time::timeout(Duration::from_millis(30), news.wait()).await;
        assert!(more.is_err(), "nothing is polled in a database of its own");
        drop(news);
        assert!(!hub.is_watched());
    }

    #[tokio::test]
    async fn too_many_rings_mean_everything() {
        let hub = Hub::new(Reach::Alone);
        let bell = hub.bell();
        for number in 0..=MAX_RINGS as u128 {
            hub.ring(stack(number));
        }
        assert!(bell.wait().await.is_empty());
    }

    #[test]
    fn who_is_gone_hears_nothing() {
        let hub = Hub::new(Reach::Alone);
        drop(hub.bell());
        hub.ring(stack(1));
        assert!(hub.listeners.lock().unwrap().is_empty());
    }
}
