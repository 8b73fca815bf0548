//! The supervisor: claims stacks with work and runs an actor for each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kiln_stack::{Backends, Clock};
use kiln_store::{Claimable, Doorbell, EngineId, Error, Lease, StackId, Store};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinHandle, JoinSet};

use crate::actor::at_rest::AtRest;
use crate::actor::take_over::TakeOver;
use crate::actor::{Actor, Exit};
use crate::breakdown;
use crate::courier::{Courier, MessageBus, Webhooks};
use crate::fence::{FencedClouds, Moment};
use crate::heartbeat::{Heartbeat, Leases};
use crate::lifecycle::{LifecyclePlugin, Plugins};
use crate::observer::Observer;
use crate::options::Options;
use crate::preflight::Preflight;
use crate::room::Room;
use crate::unmarked::Creating;

/// How long a stopping engine sends events.
const LAST_POST: Duration = Duration::from_secs(5);
/// How long a stopping engine tries to store how long operations took.
const LAST_WRITE: Duration = Duration::from_secs(2);
/// How long an engine that has failed is remembered, for the list of services.
const FORGOTTEN: Duration = Duration::from_mins(5);
/// Pause before work begins again that has panicked.
const BEGIN_AGAIN: Duration = Duration::from_secs(1);
/// Pause before the first report is sent again.
const REPORT_AGAIN: Duration = Duration::from_secs(1);

/// An engine. All engines of a store are equal.
pub struct Engine {
    id: EngineId,
    options: Arc<Options>,
    backends: Backends,
    bell: Arc<dyn Doorbell>,
    leases: Leases,
    observer: Observer,
    room: Arc<Room>,
    actors: BTreeMap<StackId, Running>,
    tasks: JoinSet<(Lease, Exit)>,
    /// The runtime of the heartbeat, and its store.
    pulse: Option<(tokio::runtime::Handle, Arc<dyn Store>)>,
    drain: watch::Sender<bool>,
    busy: BusyProjects,
    bus: Option<Arc<dyn MessageBus>>,
    webhooks: Option<Webhooks>,
    plugins: Plugins,
    preflight: Option<Arc<dyn Preflight>>,
    creating: Arc<Creating>,
}

/// The projects that have their share of the engine.
#[derive(Default)]
struct BusyProjects {
    ids: Vec<String>,
    /// When they had it: all stacks of a project may end at the same time, and it has many more.
    seen: Duration,
    /// When to look for stacks of other projects again.
    next_search: Duration,
}

struct Running {
    lease: Lease,
    wake: Arc<Notify>,
}

impl Engine {
    /// A new engine, not running.
    pub fn new(options: Options, backends: Backends) -> Self {
        let bell = backends.store.doorbell();
        let room = Arc::new(Room::new(options.max_stacks));
        Self {
            id: EngineId(backends.chance.uuid()),
            options: Arc::new(options),
            backends,
            bell,
            leases: Leases::default(),
            observer: Observer::default(),
            room,
            actors: BTreeMap::new(),
            tasks: JoinSet::new(),
            pulse: None,
            drain: watch::Sender::new(false),
            busy: BusyProjects::default(),
            bus: None,
            webhooks: None,
            plugins: Plugins::default(),
            preflight: None,
            creating: Arc::default(),
        }
    }

    /// With checks before creates and updates.
    #[must_use]
    pub fn with_preflight(mut self, preflight: Arc<dyn Preflight>) -> Self {
        self.preflight = Some(preflight);
        self
    }

    /// Runs lifecycle plug-ins before and after each operation, in this order.
    #[must_use]
    pub fn with_plugins(mut self, plugins: Vec<Arc<dyn LifecyclePlugin>>) -> Self {
        self.plugins = Plugins::new(plugins);
        self
    }

    /// Sends notifications to a message bus.
    #[must_use]
    pub fn with_bus(mut self, bus: Arc<dyn MessageBus>) -> Self {
        self.bus = Some(bus);
        self
    }

    /// Sends events to the receivers of webhooks.
    #[must_use]
    pub fn with_webhooks(mut self, webhooks: Webhooks) -> Self {
        self.webhooks = Some(webhooks);
        self
    }

    /// Runs the heartbeat on another runtime with its own store, so that the evaluation of templates cannot delay it.
    #[must_use]
    pub fn with_heartbeat_on(mut self, runtime: tokio::runtime::Handle, store: Arc<dyn Store>) -> Self {
        self.pulse = Some((runtime, store));
        self
    }

    /// Runs until `stop` becomes true; then completes running calls and releases its leases, so that other engines
    /// continue immediately.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
        let clock = Arc::clone(&self.backends.clock);
        let lock = self.backends.store.lock_engines().await?;
        self.observer.are_gone(lock.gone.clone());
        self.report_for_the_first_time(&mut stop).await;
        let heartbeat = self.start_heartbeat();
        let (bus, plugins, webhooks) = (self.bus.clone(), self.plugins.clone(), self.webhooks.clone());
        let courier = Courier::new(self.backends.clone(), bus, plugins, webhooks, self.options.lease);
        let (backends, options, emptied) = (self.backends.clone(), Arc::clone(&self.options), courier.emptied_lanes());
        let id = self.id;
        let housekeeping =
            move || crate::housekeeping::run(backends.clone(), id, Arc::clone(&options), emptied.clone());
        let _housekeeping =
            AbortOnDrop(tokio::spawn(keep_running("the housekeeping", Arc::clone(&clock), housekeeping)));
        let closing = watch::Sender::new(false);
        let (courier, closes) = (Arc::new(courier), closing.subscribe());
        let courier = move || Arc::clone(&courier).run(closes.clone());
        let mut courier = AbortOnDrop(tokio::spawn(keep_running("the courier", Arc::clone(&clock), courier)));
        let mut claim_all = false;
        let mut rung: Vec<StackId> = Vec::new();
        let mut next_poll = clock.monotonic();
        while !*stop.borrow() {
            if let Err(error) = self.claim(&rung, claim_all).await {
                tracing::warn!(%error, "failed to claim stacks");
            }
            (claim_all, rung) = (false, Vec::new());
            let now = clock.monotonic();
            if now >= next_poll {
                if let Err(error) = self.take_over().await {
                    tracing::warn!(%error, "failed to take over stacks");
                }
                claim_all = true;
                next_poll = now + self.options.poll;
                self.backends.caches.expire(now);
                self.creating.expire(now);
                continue;
            }
            let mut first = None;
            tokio::select! {
                // In a fixed order, so that a simulation can be replayed.
                biased;
                changed = stop.changed() => if changed.is_err() { break },
                Some(ended) = self.tasks.join_next() => first = Some(ended),
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
                () = self.room.freed() => claim_all = true,
                () = clock.sleep(next_poll.saturating_sub(now)) => {}
            }
            claim_all |= self.all_ended(first).await;
        }
        let last = self.heartbeat();
        self.drain().await?;
        // A process for one user may be the only one for a long time: its last events are sent before it ends.
        closing.send_replace(true);
        tokio::select! {
            biased;
            _ = &mut courier.0 => {}
            () = clock.sleep(LAST_POST) => tracing::info!("events are left in the outbox for the next engine"),
        }
        drop(heartbeat);
        last.report_end().await;
        Ok(())
    }

    /// Others must know the engine before it claims anything.
    async fn report_for_the_first_time(&self, stop: &mut watch::Receiver<bool>) {
        let heartbeat = self.heartbeat();
        while !*stop.borrow() && !heartbeat.beat().await {
            tokio::select! {
                biased;
                _ = stop.changed() => {}
                () = self.backends.clock.sleep(REPORT_AGAIN) => {}
            }
        }
    }

    fn start_heartbeat(&self) -> AbortOnDrop {
        let mut heartbeat = self.heartbeat();
        if let Some((_, store)) = &self.pulse {
            heartbeat.store = Arc::clone(store);
        }
        let heartbeat = Arc::new(heartbeat);
        let beats =
            keep_running("the heartbeat", Arc::clone(&self.backends.clock), move || Arc::clone(&heartbeat).run());
        AbortOnDrop(match &self.pulse {
            Some((runtime, _)) => runtime.spawn(beats),
            None => tokio::spawn(beats),
        })
    }

    fn heartbeat(&self) -> Heartbeat {
        Heartbeat {
            id: self.id,
            hostname: self.options.hostname.clone(),
            store: Arc::clone(&self.backends.store),
            work: Arc::clone(&self.backends.store),
            clock: Arc::clone(&self.backends.clock),
            leases: self.leases.clone(),
            ttl: self.options.lease,
            started: self.backends.clock.now(),
        }
    }

    async fn claim(&mut self, rung: &[StackId], all: bool) -> Result<(), Error> {
        if rung.is_empty() && !all {
            return Ok(());
        }
        let busy = self.room.busy_projects();
        let now = self.backends.clock.monotonic();
        if !busy.is_empty() || now > self.busy.seen + 2 * self.options.poll {
            (self.busy.ids, self.busy.seen) = (busy, now);
        }
        let room = self.room.left(self.actors.len());
        if room == 0 {
            self.room.is_full(self.actors.len());
            return Ok(());
        }
        let won = if all { self.claim_for_others(room).await? } else { 0 };
        if won < room {
            let claimable = if all { Claimable::Free } else { Claimable::Named(rung) };
            self.claim_each(claimable, room - won).await?;
        }
        Ok(())
    }

    /// Claims so many stacks at most, and starts the actor of each as soon as its lease is won: from then on the heartbeat
    /// knows the lease. Returns their number.
    async fn claim_each(&mut self, claimable: Claimable<'_>, room: usize) -> Result<usize, Error> {
        let (store, id, ttl) = (Arc::clone(&self.backends.store), self.id, self.options.lease);
        let (reported, mut won) = (self.leases.reported(), 0);
        let mut start = |lease| {
            won += 1;
            self.start(lease, reported);
        };
        store.claim_each(id, ttl, claimable, room, &mut start).await?;
        if won >= room {
            self.room.is_full(self.actors.len());
        }
        Ok(won)
    }

    /// Starts the actor of a stack that was claimed after this report.
    fn start(&mut self, lease: Lease, reported: Moment) {
        if !lease.clean {
            tracing::info!(stack = %lease.stack, idle = ?lease.idle, "took over the stack from a failed engine");
        }
        tracing::trace!(target: "kiln::metric", metric = "actors_started", taken_over = !lease.clean);
        let wake = Arc::new(Notify::new());
        let fence = self.leases.add(lease, reported, self.options.lease);
        let (clouds, clock) = (Arc::clone(&self.backends.clouds), Arc::clone(&self.backends.clock));
        let actor = Actor {
            lease,
            taken_over: TakeOver::new(&lease, self.options.call_limit, reported.monotonic, clock.monotonic()),
            fence: fence.clone(),
            backends: Backends { clouds: Arc::new(FencedClouds { clouds, fence, clock }), ..self.backends.clone() },
            creating: Arc::clone(&self.creating),
            options: Arc::clone(&self.options),
            wake: Arc::clone(&wake),
            room: Arc::clone(&self.room),
            plugins: self.plugins.clone(),
            preflight: self.preflight.clone(),
            drain: self.drain.subscribe(),
        };
        self.actors.insert(lease.stack, Running { lease, wake });
        let task = self.tasks.spawn(async move {
            let exit = std::panic::AssertUnwindSafe(actor.run()).catch_unwind().await;
            (lease, exit.unwrap_or(Exit::Panicked))
        });
        self.leases.set_actor(lease, task);
    }

    /// Claims the stacks of engines that have failed.
    async fn take_over(&mut self) -> Result<(), Error> {
        let room = self.room.left(self.actors.len());
        if room == 0 {
            return Ok(());
        }
        let (store, clock) = (Arc::clone(&self.backends.store), &self.backends.clock);
        let asked = clock.monotonic();
        let engines = store.engines().await?;
        let mut silent = self.observer.silent(&engines, (asked, clock.monotonic()), self.options.lease);
        silent.retain(|silent| silent.engine != self.id);
        let held = self.leases.stacks();
        let won = self.claim_each(Claimable::LeftBehind { silent: &silent, held: &held }, room).await?;
        for gone in silent.iter().filter(|silent| won == 0 && silent.idle > FORGOTTEN) {
            store.forget_engine(gone).await?;
        }
        Ok(())
    }

    /// If some projects have their share of the engine, the stacks of other projects come first.
    async fn claim_for_others(&mut self, room: usize) -> Result<usize, Error> {
        let now = self.backends.clock.monotonic();
        // A search that finds nothing reads all that these projects have.
        if self.busy.ids.is_empty() || now < self.busy.next_search {
            return Ok(0);
        }
        let projects = self.busy.ids.clone();
        let won = self.claim_each(Claimable::OfOtherProjects(&projects), room).await?;
        if won == 0 {
            self.busy.next_search = now + self.options.poll;
        }
        Ok(won)
    }

    /// Actors have ended, `first` and those that ended meanwhile: releases their leases together. Returns whether there may
    /// be more stacks to claim.
    async fn all_ended(&mut self, first: Option<Result<(Lease, Exit), JoinError>>) -> bool {
        let mut leases = Vec::new();
        let mut next = first.or_else(|| self.tasks.try_join_next());
        let is_any = next.is_some();
        while let Some(ended) = next {
            leases.extend(self.ended(ended).await.map(AtRest::lease));
            next = self.tasks.try_join_next();
        }
        if !leases.is_empty()
            && let Err(error) = self.backends.store.release(&leases).await
        {
            // Nobody renews them: they expire.
            tracing::warn!(leases = leases.len(), %error, "failed to release leases");
        }
        is_any
    }

    /// An actor has ended. Its lease is released if it is at rest; otherwise calls may still be in progress, and the lease
    /// expires.
    async fn ended(&mut self, ended: Result<(Lease, Exit), JoinError>) -> Option<AtRest> {
        let Ok((lease, exit)) = ended else {
            // Its lease is lost: the heartbeat has stopped the actor.
            let held: Vec<StackId> = self.actors.keys().copied().collect();
            for stack in held {
                if !self.leases.contains(stack) {
                    self.actors.remove(&stack);
                }
            }
            return None;
        };
        if self.actors.get(&lease.stack).is_some_and(|actor| actor.lease.epoch == lease.epoch) {
            self.actors.remove(&lease.stack);
        }
        self.leases.remove(lease);
        tracing::trace!(target: "kiln::metric", metric = "actors_ended", exit = exit.name());
        match exit {
            Exit::Settled(Some(rest)) | Exit::Drained(Some(rest)) => return Some(rest),
            // A call may be in progress: the lease expires, so that the next owner looks for what it has made.
            Exit::Settled(None) | Exit::Drained(None) | Exit::Lost => {}
            // The lease expires and any engine takes the stack up again later: the problem may take some time.
            Exit::Broken(error) => tracing::error!(stack = %lease.stack, %error, "work on a stack failed"),
            Exit::Refused(text) => self.fail(lease, &text).await,
            Exit::Panicked => {
                tracing::error!(stack = %lease.stack, "work on a stack failed because of a bug in Kiln");
                self.fail(lease, "bug in Kiln, see the log of the engine").await;
            }
        }
        None
    }

    /// Fails a request that cannot be processed. Calls may have been in progress: the lease expires.
    async fn fail(&self, lease: Lease, text: &str) {
        if let Err(error) = breakdown::end(&self.backends, lease, self.options.call_limit, text).await {
            tracing::error!(stack = %lease.stack, %error, "failed to mark a stack as failed");
        }
    }

    /// Completes running calls, up to a time limit, and releases the leases. Calls that are still running then are
    /// aborted, and their leases expire.
    async fn drain(mut self) -> Result<(), Error> {
        self.drain.send_replace(true);
        let clock = Arc::clone(&self.backends.clock);
        let mut over = clock.sleep(self.options.drain);
        while !self.tasks.is_empty() {
            tokio::select! {
                biased;
                first = self.tasks.join_next() => { self.all_ended(first).await; }
                () = &mut over => break,
            }
        }
        if !self.tasks.is_empty() {
            tracing::warn!(stacks = self.tasks.len(), "calls are still running: the leases of their stacks expire");
        }
        drop(over);
        // First: a lease of an aborted actor is not renewed any more.
        self.leases.clear();
        self.tasks.shutdown().await;
        // For a process that lives only for a moment. Nothing depends on it.
        tokio::select! {
            biased;
            () = crate::housekeeping::store_durations(&self.backends) => {}
            () = clock.sleep(LAST_WRITE) => {}
        }
        Ok(())
    }
}

/// Work that lasts as long as the engine. After a panic it begins again: an engine without its heartbeat, for example, would
/// wait for ever at closed fences.
async fn keep_running<W>(what: &'static str, clock: Arc<dyn Clock>, begin: impl Fn() -> W)
where
    W: Future<Output = ()>,
{
    while std::panic::AssertUnwindSafe(begin()).catch_unwind().await.is_err() {
        tracing::error!(what, "begins again after a bug in Kiln");
        clock.sleep(BEGIN_AGAIN).await;
    }
}

/// A task that is aborted on drop.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
