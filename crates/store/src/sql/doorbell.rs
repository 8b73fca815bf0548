//! Who should look, and at what.
//!
//! In a process, every [`Doorbell`] that was given out hears every ring. PostgreSQL carries rings to other processes;
//! elsewhere those who wait look again after a while.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use sea_orm::sqlx;
use sea_orm::sqlx::postgres::{PgListener, PgPool};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;
use uuid::Uuid;

use crate::{Doorbell, StackId};

/// How long a wait lasts at most where other processes may write unheard.
const PATIENCE: Duration = Duration::from_millis(500);
/// And where they are heard: a ring may still be lost.
const LONG_PATIENCE: Duration = Duration::from_secs(2);
/// Rings kept for one who does not come for them; beyond it is told to look at everything.
const MAX_RINGS: usize = 10_000;

/// PostgreSQL's channel.
const CHANNEL: &str = "kiln";
/// Ids in one notification, which may have 8,000 bytes.
const IDS_PER_NOTIFICATION: usize = 200;
/// Between two tries to listen.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// Who else writes to the database.
#[derive(Debug)]
pub(super) enum Reach {
    /// No one: it lives in this process.
    Alone,
    /// Others, unheard.
    Shared,
    /// Others, whose rings PostgreSQL carries while `listening` holds.
    Carried { listening: AtomicBool, outbound: UnboundedSender<StackId> },
}

/// Passes rings on.
#[derive(Debug)]
pub(super) struct Hub {
    listeners: Mutex<Vec<Weak<Bell>>>,
    reach: Reach,
}

impl Hub {
    pub(super) fn new(reach: Reach) -> Arc<Self> {
        Arc::new(Self { listeners: Mutex::default(), reach })
    }

    /// A bell of its own for one who waits.
    pub(super) fn bell(self: &Arc<Self>) -> Arc<Bell> {
        let bell = Arc::new(Bell { hub: Arc::clone(self), rings: Mutex::default(), notify: Notify::new() });
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&bell));
        bell
    }

    /// Rings here and elsewhere.
    pub(super) fn ring(&self, stack: StackId) {
        self.ring_here(Some(stack));
        if let Reach::Carried { outbound, .. } = &self.reach {
            // It fails only while the store is being closed.
            let _ = outbound.send(stack);
        }
    }

    /// Rings in this process; `None`: for everything.
    fn ring_here(&self, stack: Option<StackId>) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).retain(|listener| {
            let Some(bell) = listener.upgrade() else { return false };
            bell.hear(stack);
            true
        });
    }

    fn patience(&self) -> Option<Duration> {
        match &self.reach {
            Reach::Alone => None,
            Reach::Carried { listening, .. } if listening.load(Ordering::Relaxed) => Some(LONG_PATIENCE),
            Reach::Shared | Reach::Carried { .. } => Some(PATIENCE),
        }
    }

    fn set_listening(&self, now: bool) {
        if let Reach::Carried { listening, .. } = &self.reach {
            listening.store(now, Ordering::Relaxed);
        }
    }
}

#[derive(Debug, Default)]
struct Rings {
    stacks: BTreeSet<StackId>,
    /// Look at everything.
    all: bool,
}

/// The bell of one who waits.
#[derive(Debug)]
pub(super) struct Bell {
    hub: Arc<Hub>,
    rings: Mutex<Rings>,
    notify: Notify,
}

impl Bell {
    fn hear(&self, stack: Option<StackId>) {
        {
            let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
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
        let rings = std::mem::take(&mut *self.rings.lock().unwrap_or_else(PoisonError::into_inner));
        match (rings.all, rings.stacks.is_empty()) {
            (true, _) => Some(Vec::new()),
            (false, true) => None,
            (false, false) => Some(rings.stacks.into_iter().collect()),
        }
    }
}

#[async_trait]
impl Doorbell for Bell {
    fn ring(&self, stack: StackId) {
        self.hub.ring(stack);
    }

    async fn wait(&self) -> Vec<StackId> {
        loop {
            if let Some(rung) = self.take() {
                return rung;
            }
            match self.hub.patience() {
                None => self.notify.notified().await,
                Some(patience) => {
                    if tokio::time::timeout(patience, self.notify.notified()).await.is_err() {
                        return self.take().unwrap_or_default();
                    }
                }
            }
        }
    }
}

/// The tasks that carry rings; they end with it.
#[derive(Debug, Default)]
pub(super) struct Wires(Vec<AbortHandle>);

impl Drop for Wires {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// A hub whose rings PostgreSQL carries, and the wires.
pub(super) fn carried(pool: &PgPool, url: String) -> (Arc<Hub>, Wires) {
    let (outbound, inbound) = unbounded_channel();
    let hub = Hub::new(Reach::Carried { listening: AtomicBool::new(false), outbound });
    #[expect(clippy::disallowed_methods, reason = "tells this process from others; nothing depends on what it is")]
    let origin = Uuid::new_v4().to_string();
    let carry = tokio::spawn(carry(pool.clone(), inbound, origin.clone())).abort_handle();
    let listen = tokio::spawn(listen(url, Arc::clone(&hub), origin)).abort_handle();
    (hub, Wires(vec![carry, listen]))
}

/// Sends rings on, as many at once as have come meanwhile: a commit of a notification is serial for the whole server,
/// so none is made in the transactions that ring.
async fn carry(pool: PgPool, mut rings: UnboundedReceiver<StackId>, origin: String) {
    let mut stacks = Vec::new();
    while rings.recv_many(&mut stacks, IDS_PER_NOTIFICATION).await > 0 {
        let ids: BTreeSet<String> = stacks.drain(..).map(|stack| stack.to_string()).collect();
        let payload = ids.into_iter().fold(origin.clone(), |payload, id| payload + " " + &id);
        let sent = sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(payload).execute(&pool).await;
        if let Err(error) = sent {
            tracing::debug!(%error, "a ring was lost");
        }
    }
}

/// Hears the rings of other processes. After a lost connection everything is worth a look.
async fn listen(url: String, hub: Arc<Hub>, origin: String) {
    loop {
        if let Err(error) = hear(&url, &hub, &origin).await {
            tracing::debug!(%error, "rings of other processes are not heard");
        }
        hub.set_listening(false);
        hub.ring_here(None);
        tokio::time::sleep(LISTEN_AGAIN).await;
    }
}

async fn hear(url: &str, hub: &Hub, origin: &str) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect(url).await?;
    listener.listen(CHANNEL).await?;
    hub.set_listening(true);
    hub.ring_here(None);
    while let Some(notification) = listener.try_recv().await? {
        let mut words = notification.payload().split(' ');
        if words.next() != Some(origin) {
            for id in words.filter_map(|word| word.parse().ok()) {
                hub.ring_here(Some(id));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
    async fn a_shared_database_is_looked_at_from_time_to_time() {
        let bell = Hub::new(Reach::Shared).bell();
        let before = tokio::time::Instant::now();
        assert!(bell.wait().await.is_empty());
        assert_eq!(before.elapsed(), PATIENCE);
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
