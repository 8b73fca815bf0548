//! The supervisor: claims stacks that have work, runs an actor for each, keeps the leases alive.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kiln_plan::ResourceTypes;
use kiln_store::{Doorbell, EngineId, EngineInfo, Error, Lease, StackId, Store};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::actor::{Actor, Exit};
use crate::clock::{Chance, Clock};
use crate::clouds::Clouds;
use crate::housekeeping;
use crate::options::Options;

/// What an engine works with. Everything that is outside is behind a trait.
#[derive(Clone)]
pub struct Backends {
    /// Where stacks are remembered.
    pub store: Arc<dyn Store>,
    /// The resource types and the operator's environment.
    pub resource_types: Arc<ResourceTypes>,
    /// The clouds.
    pub clouds: Arc<dyn Clouds>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub chance: Arc<Chance>,
}

/// An engine: equal to all others on the same store.
pub struct Engine {
    id: EngineId,
    options: Arc<Options>,
    backends: Backends,
    bell: Arc<dyn Doorbell>,
    actors: HashMap<StackId, Running>,
    tasks: JoinSet<(StackId, Exit)>,
    reported: Option<jiff::Timestamp>,
}

struct Running {
    lease: Lease,
    wake: Arc<Notify>,
}

impl Engine {
    /// An engine that does not run yet.
    pub fn new(options: Options, backends: Backends) -> Self {
        let bell = backends.store.doorbell();
        let id = EngineId(backends.chance.uuid());
        let (actors, tasks) = (HashMap::new(), JoinSet::new());
        Self { id, options: Arc::new(options), backends, bell, actors, tasks, reported: None }
    }

    /// Works until `stop` becomes true; then gives its leases back, so that other engines go on at once.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
        let started = self.backends.clock.now();
        let clock = Arc::clone(&self.backends.clock);
        let beat = self.options.lease / 3;
        let mut tasks = JoinSet::new();
        tasks.spawn(housekeeping::run(self.backends.clone(), Arc::clone(&self.options)));
        self.report(started).await;
        let mut claim_all = true;
        let mut rung: Vec<StackId> = Vec::new();
        let mut next_beat = clock.now() + beat;
        let mut next_poll = clock.now() + self.options.poll;
        while !*stop.borrow() {
            if let Err(error) = self.claim(&rung, claim_all).await {
                tracing::warn!(%error, "could not claim stacks");
            }
            (claim_all, rung) = (false, Vec::new());
            let now = clock.now();
            if now >= next_beat {
                self.renew().await;
                self.report(started).await;
                next_beat = now + beat;
            }
            if now >= next_poll {
                claim_all = true;
                next_poll = now + self.options.poll;
                continue;
            }
            let wait = Duration::try_from(next_beat.min(next_poll).duration_since(now)).unwrap_or_default();
            tokio::select! {
                stacks = self.bell.wait() => {
                    claim_all = stacks.is_empty();
                    for stack in stacks {
                        match self.actors.get(&stack) {
                            Some(actor) => actor.wake.notify_one(),
                            None => rung.push(stack),
                        }
                    }
                    if claim_all {
                        self.actors.values().for_each(|actor| actor.wake.notify_one());
                    }
                }
                Some(ended) = self.tasks.join_next() => claim_all |= self.ended(ended).await,
                () = clock.sleep(wait) => {}
                changed = stop.changed() => if changed.is_err() { break },
            }
            // Everything else that ended meanwhile, in one go.
            while let Some(ended) = self.tasks.try_join_next() {
                claim_all |= self.ended(ended).await;
            }
        }
        self.drain().await
    }

    async fn claim(&mut self, rung: &[StackId], all: bool) -> Result<(), Error> {
        let room = self.options.max_stacks.saturating_sub(self.actors.len());
        if room == 0 || (rung.is_empty() && !all) {
            return Ok(());
        }
        let only = if all { &[] } else { rung };
        let leases = self.backends.store.claim(self.id, self.options.lease, only, room).await?;
        for lease in leases {
            let wake = Arc::new(Notify::new());
            let actor = Actor::new(lease, self.backends.clone(), Arc::clone(&self.options), Arc::clone(&wake));
            self.actors.insert(lease.stack, Running { lease, wake });
            self.tasks.spawn(async move {
                let exit = std::panic::AssertUnwindSafe(actor.run()).catch_unwind().await;
                (lease.stack, exit.unwrap_or(Exit::Panicked))
            });
        }
        Ok(())
    }

    /// An actor ended: its lease goes back. True if there may be more to claim.
    async fn ended(&mut self, ended: Result<(StackId, Exit), tokio::task::JoinError>) -> bool {
        let (stack, exit) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                tracing::error!(%error, "an actor was lost");
                return false;
            }
        };
        match &exit {
            Exit::Broken(error) => tracing::error!(%stack, %error, "work on a stack broke off"),
            Exit::Panicked => tracing::error!(%stack, "work on a stack broke off by a defect of Kiln"),
            Exit::Settled | Exit::Lost => {}
        }
        if matches!(exit, Exit::Broken(_) | Exit::Panicked) {
            // It is taken up again, by whichever engine, but not at once: what broke it may last.
            let (clock, pause) = (Arc::clone(&self.backends.clock), self.options.lease);
            self.tasks.spawn(async move {
                clock.sleep(pause).await;
                (stack, Exit::Settled)
            });
            return false;
        }
        let Some(actor) = self.actors.remove(&stack) else { return false };
        if matches!(exit, Exit::Settled)
            && let Err(error) = self.backends.store.release(&[actor.lease]).await
        {
            tracing::warn!(%error, "could not release a lease");
        }
        true
    }

    async fn renew(&mut self) {
        if self.actors.is_empty() {
            return;
        }
        let leases: Vec<Lease> = self.actors.values().map(|actor| actor.lease).collect();
        match self.backends.store.renew(self.id, self.options.lease, &leases).await {
            Ok(held) => {
                let held: HashMap<StackId, i64> = held.into_iter().map(|l| (l.stack, l.epoch)).collect();
                for (stack, actor) in &self.actors {
                    if held.get(stack) != Some(&actor.lease.epoch) {
                        tracing::warn!(%stack, "lease lost");
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "could not renew leases"),
        }
    }

    async fn report(&mut self, started: jiff::Timestamp) {
        let now = self.backends.clock.now();
        let interval = self.options.lease / 3;
        let due = self.reported.is_none_or(|last| now.duration_since(last).unsigned_abs() >= interval);
        if !due {
            return;
        }
        self.reported = Some(now);
        let info = EngineInfo {
            id: self.id,
            hostname: self.options.hostname.clone(),
            pid: std::process::id(),
            started,
            seen: now,
            interval: u32::try_from(interval.as_secs()).unwrap_or(u32::MAX).max(1),
        };
        if let Err(error) = self.backends.store.report(&info).await {
            tracing::warn!(%error, "could not report");
        }
    }

    /// Stops the actors where they are, which is always a safe point, and gives the leases back.
    async fn drain(mut self) -> Result<(), Error> {
        self.tasks.shutdown().await;
        let leases: Vec<Lease> = self.actors.values().map(|actor| actor.lease).collect();
        if leases.is_empty() { Ok(()) } else { self.backends.store.release(&leases).await }
    }
}
