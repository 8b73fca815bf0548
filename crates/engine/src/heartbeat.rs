//! Renews the leases of an engine, independently of all other work.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kiln_stack::Clock;
use kiln_store::{EngineId, EngineInfo, Error, Lease, StackId, Store};
use tokio::task::AbortHandle;

use crate::fence::{Fence, Moment};
use crate::observer::{BEATS, interval_of};

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
pub(crate) struct Leases(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    held: BTreeMap<StackId, Held>,
    /// Before the last successful report was sent; `None`: there was none.
    reported: Option<Moment>,
}

impl Leases {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before the last successful report was sent: read before a claim is sent.
    pub(crate) fn reported(&self) -> Moment {
        self.state().reported.unwrap_or_default()
    }

    /// Adds a lease that was claimed after this report, and returns its fence. Work under an older lease of the stack is
    /// aborted.
    pub(crate) fn add(&self, lease: Lease, reported: Moment, ttl: Duration) -> Fence {
        let fence = Fence::new(reported, ttl);
        let older = self.state().held.insert(lease.stack, Held { lease, fence: fence.clone(), actor: None });
        if let Some(actor) = older.and_then(|held| held.actor) {
            actor.abort();
        }
        fence
    }

    /// Sets the actor to abort when the lease is lost.
    pub(crate) fn set_actor(&self, lease: Lease, actor: AbortHandle) {
        if let Some(held) = self.state().held.get_mut(&lease.stack).filter(|held| held.lease.epoch == lease.epoch) {
            held.actor = Some(actor);
        }
    }

    /// Stops renewing a lease.
    pub(crate) fn remove(&self, lease: Lease) {
        let mut state = self.state();
        if state.held.get(&lease.stack).is_some_and(|held| held.lease.epoch == lease.epoch) {
            state.held.remove(&lease.stack);
        }
    }

    /// Stops renewing all leases.
    pub(crate) fn clear(&self) {
        self.state().held.clear();
    }

    /// Whether there is a lease for a stack.
    pub(crate) fn contains(&self, stack: StackId) -> bool {
        self.state().held.contains_key(&stack)
    }

    /// The stacks with a lease.
    pub(crate) fn stacks(&self) -> Vec<StackId> {
        self.state().held.keys().copied().collect()
    }

    fn all(&self) -> Vec<Lease> {
        self.state().held.values().map(|held| held.lease).collect()
    }

    /// Keeps the renewed leases of `asked`; the others are lost, and their actors are aborted.
    fn renewed(&self, asked: &[Lease], renewed: &[Lease], reported: Moment, ttl: Duration) {
        let epochs: BTreeMap<StackId, i64> = renewed.iter().map(|lease| (lease.stack, lease.epoch)).collect();
        let held = &mut self.state().held;
        for lease in asked {
            let Some(one) = held.get(&lease.stack).filter(|held| held.lease.epoch == lease.epoch) else { continue };
            if epochs.get(&lease.stack) == Some(&lease.epoch) {
                one.fence.extend(reported, ttl);
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
    pub(crate) async fn run(self: Arc<Self>) {
        let beat = self.ttl / BEATS;
        loop {
            let pause = if self.within(beat, self.beat()).await == Some(true) { beat } else { beat / 4 };
            self.clock.sleep(pause).await;
        }
    }

    /// Gives up what takes longer than the limit: a later attempt may use another connection, or reach a database that
    /// answers again, before the leases expire.
    async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            // In a fixed order, so that a simulation can be replayed.
            biased;
            done = work => Some(done),
            () = self.clock.sleep(limit) => {
                tracing::warn!(?limit, "the database does not answer the heartbeat");
                None
            }
        }
    }

    /// Reports, on which others judge whether the engine lives, and then renews the leases: each is held for its time to
    /// live from before the report. Returns whether both succeeded; otherwise they are retried soon. An engine whose calls
    /// to the database do not end, for example because another session holds a lock, does nothing for its stacks: it is
    /// down.
    pub(crate) async fn beat(&self) -> bool {
        let waited = self.work.oldest_call();
        if waited > self.ttl * STANDSTILL {
            tracing::error!(?waited, "a call to the database does not end: the engine stands still");
            return false;
        }
        let reported = Moment::now(&*self.clock);
        if let Err(error) = self.report(interval_of(self.ttl)).await {
            tracing::warn!(%error, "failed to report the heartbeat");
            return false;
        }
        self.leases.state().reported = Some(reported);
        let leases = self.leases.all();
        if leases.is_empty() {
            return true;
        }
        match self.store.renew(self.id, self.ttl, &leases).await {
            Ok(renewed) => {
                self.leases.renewed(&leases, &renewed, reported, self.ttl);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "failed to renew leases");
                false
            }
        }
    }

    /// Reports that the engine has stopped. Another run of the heartbeat must have ended.
    pub(crate) async fn report_end(&self) {
        if let Err(error) = self.report(0).await {
            tracing::warn!(%error, "failed to report the end of the engine");
        }
    }

    async fn report(&self, interval: u32) -> Result<(), Error> {
        let info = EngineInfo {
            id: self.id,
            hostname: self.hostname.clone(),
            pid: std::process::id(),
            started: self.started,
            seen: self.clock.now(),
            interval,
            schema: kiln_store::SCHEMA,
        };
        self.store.report(&info).await
    }
}
