//! Renews the leases of an engine, independently of all other work.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kiln_store::{EngineId, EngineInfo, Lease, StackId, Store};
use tokio::task::AbortHandle;

use crate::clock::Clock;
use crate::fence::Fence;

/// A call to the database that takes as long as this number of leases is a standstill.
const STANDSTILL: u32 = 4;

/// A lease with its actor and fence.
#[derive(Debug)]
struct Held {
    lease: Lease,
    fence: Fence,
    actor: Option<AbortHandle>,
}

/// The leases of an engine. Clones share the same leases.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leases(Arc<Mutex<BTreeMap<StackId, Held>>>);

impl Leases {
    fn held(&self) -> std::sync::MutexGuard<'_, BTreeMap<StackId, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a lease with the fence that it opens. Work under an older lease of the stack, which has expired, is
    /// aborted.
    pub(crate) fn add(&self, lease: Lease, fence: Fence) {
        let older = self.held().insert(lease.stack, Held { lease, fence, actor: None });
        if let Some(actor) = older.and_then(|held| held.actor) {
            actor.abort();
        }
    }

    /// Sets the actor to abort when the lease is lost.
    pub(crate) fn set_actor(&self, lease: Lease, actor: AbortHandle) {
        if let Some(held) = self.held().get_mut(&lease.stack).filter(|held| held.lease.epoch == lease.epoch) {
            held.actor = Some(actor);
        }
    }

    /// Stops renewing a lease.
    pub(crate) fn remove(&self, lease: Lease) {
        let mut held = self.held();
        if held.get(&lease.stack).is_some_and(|held| held.lease.epoch == lease.epoch) {
            held.remove(&lease.stack);
        }
    }

    /// Whether there is a lease for a stack.
    pub(crate) fn contains(&self, stack: StackId) -> bool {
        self.held().contains_key(&stack)
    }

    fn all(&self) -> Vec<Lease> {
        self.held().values().map(|held| held.lease).collect()
    }

    /// Keeps the renewed leases of `asked`; the others are lost, and their actors are aborted.
    fn renewed(&self, asked: &[Lease], renewed: &[Lease], at: Duration, ttl: Duration) {
        let epochs: BTreeMap<StackId, i64> = renewed.iter().map(|lease| (lease.stack, lease.epoch)).collect();
        let mut held = self.held();
        for lease in asked {
            let Some(one) = held.get(&lease.stack).filter(|held| held.lease.epoch == lease.epoch) else { continue };
            if epochs.get(&lease.stack) == Some(&lease.epoch) {
                one.fence.extend(at, ttl);
                continue;
            }
            tracing::warn!(stack = %lease.stack, "lost the lease: another engine works on the stack");
            if let Some(actor) = &one.actor {
                actor.abort();
            }
            held.remove(&lease.stack);
        }
    }
}

/// Renews the leases and reports that the engine is alive.
pub(crate) struct Heartbeat {
    pub(crate) id: EngineId,
    pub(crate) hostname: String,
    pub(crate) store: Arc<dyn Store>,
    /// The database as the work on stacks uses it.
    pub(crate) work: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) leases: Leases,
    pub(crate) ttl: Duration,
    /// When the engine started.
    pub(crate) started: jiff::Timestamp,
}

impl Heartbeat {
    /// Runs three times per lease duration, until it is dropped.
    pub(crate) async fn run(self) {
        let beat = self.ttl / 3;
        let interval = u32::try_from(beat.as_secs()).unwrap_or(u32::MAX).max(1);
        loop {
            let beats = async { tokio::join!(self.report_progress(interval), self.renew()).1 };
            let pause = if self.within(beat, beats).await == Some(true) { beat } else { beat / 4 };
            self.clock.sleep(pause).await;
        }
    }

    /// Gives up what takes longer than the limit: a later attempt may use another connection, or reach a database that
    /// answers again, before the leases expire.
    async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.clock.sleep(limit) => {
                tracing::warn!(?limit, "the database does not answer the heartbeat");
                None
            }
        }
    }

    /// Returns whether everything succeeded; otherwise it is retried soon.
    async fn renew(&self) -> bool {
        let leases = self.leases.all();
        if leases.is_empty() {
            return true;
        }
        // Counted from before the request: the database may read its clock immediately.
        let asked = self.clock.monotonic();
        match self.store.renew(self.id, self.ttl, &leases).await {
            Ok(renewed) => {
                self.leases.renewed(&leases, &renewed, asked, self.ttl);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "failed to renew leases");
                false
            }
        }
    }

    /// Reports that the engine is alive. One whose calls to the database do not end, for example because another session
    /// holds a lock, does nothing for its stacks: it is down.
    async fn report_progress(&self, interval: u32) {
        let waited = self.work.oldest_call();
        if waited > self.ttl * STANDSTILL {
            tracing::error!(?waited, "a call to the database does not end: the engine stands still");
        } else {
            self.report(interval).await;
        }
    }

    /// Reports that the engine has stopped. Another run of the heartbeat must have ended.
    pub(crate) async fn report_end(&self) {
        self.report(0).await;
    }

    async fn report(&self, interval: u32) {
        let info = EngineInfo {
            id: self.id,
            hostname: self.hostname.clone(),
            pid: std::process::id(),
            started: self.started,
            seen: self.clock.now(),
            interval,
        };
        if let Err(error) = self.store.report(&info).await {
            tracing::warn!(%error, "failed to report the heartbeat");
        }
    }
}
