//! Housekeeping: purges old data, deletes the projects of the users of deleted stacks, revokes credentials that no live stack
//! uses, and stores how long operations took.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kiln_resource::{CredentialsId, EngineId, StackId};
use kiln_stack::{Backends, UNUSED_AFTER};
use kiln_store::{Doorbell, Error, Retention};
use tokio::sync::watch;

use crate::options::Options;

/// Interval of the search for unused credentials without events.
const RARELY: Duration = Duration::from_mins(10);
/// Delay of the search after news about a stack, which may have been deleted.
const SOON: Duration = Duration::from_secs(10);
/// Delay before credentials that could not be revoked are retried; it doubles with each attempt.
const FIRST_RETRY: Duration = Duration::from_secs(10);
/// Maximum of that delay.
const LAST_RETRY: Duration = Duration::from_hours(1);
/// Minimum delay of a round that only retries: each round lists all that have failed.
const BETWEEN_RETRIES: Duration = Duration::from_secs(5);
/// How often it is stored how long operations took.
const BETWEEN_DURATIONS: Duration = Duration::from_mins(1);
/// Maximum number of credentials per round.
const PER_ROUND: usize = 100;

/// Runs until it is dropped. Every engine runs it; concurrent work is idempotent. `sent`: changes when the courier has
/// sent all entries of a lane.
pub async fn run(backends: Backends, id: EngineId, options: Arc<Options>, sent: watch::Receiver<()>) {
    tokio::join!(forget(&backends, id, &options), sweep(&backends, sent), remember_durations(&backends));
}

/// Stores how long operations of resources took, from time to time.
async fn remember_durations(backends: &Backends) {
    loop {
        backends.clock.sleep(BETWEEN_DURATIONS).await;
        store_durations(backends).await;
    }
}

/// Stores how long operations of resources took.
pub(crate) async fn store_durations(backends: &Backends) {
    let stopwatch = &backends.caches.stopwatch;
    let taken = stopwatch.take();
    if taken.is_empty() {
        return;
    }
    if let Err(error) = backends.store.add_durations(&taken).await {
        tracing::warn!(%error, "failed to store how long operations took");
        stopwatch.put_back(&taken);
    }
}

/// Purges old data.
async fn forget(backends: &Backends, id: EngineId, options: &Options) {
    let mut purge = Purge::default();
    loop {
        let pause = match purge.go_on(backends, id, options).await {
            // In small steps with pauses, so that others are not blocked.
            Ok(true) => Duration::from_millis(200),
            Ok(false) => Duration::from_mins(10),
            Err(error) => {
                tracing::warn!(%error, "failed to purge old stacks");
                Duration::from_mins(1)
            }
        };
        backends.clock.sleep(pause).await;
    }
}

/// How far the purge has come.
#[derive(Default)]
struct Purge {
    /// The number of the event up to which events were purged.
    after: u64,
    /// Only events are left in this round: to look for anything else reads all stacks.
    only_events: bool,
}

impl Purge {
    /// Purges some data, if no other engine started before this one, so that only one does. Returns whether there may be
    /// more.
    async fn go_on(&mut self, backends: &Backends, id: EngineId, options: &Options) -> Result<bool, Error> {
        if backends.store.engines().await?.first().is_some_and(|first| first.id != id) {
            return Ok(false);
        }
        if !self.only_events {
            let deleted_before = backends.clock.now() - options.keep_deleted;
            let retention = Retention { deleted_before, operations: options.kept_operations };
            if backends.store.forget(&retention).await? > 0 {
                return Ok(true);
            }
            self.only_events = true;
        }
        if options.max_events > 0 {
            let purged = backends.store.forget_events(options.max_events, self.after).await?;
            self.after = purged.after;
            if purged.has_more {
                return Ok(true);
            }
        }
        self.only_events = false;
        Ok(false)
    }
}

/// Revokes unused credentials, soon after news about a stack or after its last events were sent, and else rarely.
async fn sweep(backends: &Backends, mut sent: watch::Receiver<()>) {
    let bell = backends.store.doorbell();
    let mut sweep = CredentialsSweep::new(backends.clone());
    loop {
        let next = sweep.round().await;
        tokio::select! {
            // In a fixed order, so that a simulation can be replayed.
            biased;
            () = backends.clock.sleep(next) => {}
            // With a delay: events come in groups, and other engines receive them too.
            () = news(&*bell) => backends.clock.sleep(backends.chance.jitter(SOON)).await,
            // The credentials of a deleted stack are used until its last events are sent, which may be much later.
            Ok(()) = sent.changed() => backends.clock.sleep(backends.chance.jitter(SOON)).await,
        }
    }
}

/// Waits for news about a stack. A timeout of the bell is ignored: the process that deletes a stack rings in itself.
async fn news(bell: &dyn Doorbell) {
    while bell.wait().await.is_empty() {}
}

/// Deletes the projects of the users of deleted stacks, and revokes credentials that no live stack uses, then deletes their
/// rows. A row is deleted only when the project or trust is certainly deleted, so that an interruption loses nothing. Failures
/// are retried by this engine or another one.
pub struct CredentialsSweep {
    backends: Backends,
    credentials: Retries<CredentialsId>,
    /// By the stack of the users.
    projects: Retries<StackId>,
    /// Consecutive failures of the store.
    outage: u32,
}

impl CredentialsSweep {
    /// A new sweep.
    pub fn new(backends: Backends) -> Self {
        Self { backends, credentials: Retries::default(), projects: Retries::default(), outage: 0 }
    }

    /// Deletes and revokes what is unused; returns the delay until the next round.
    pub async fn round(&mut self) -> Duration {
        match self.take_back().await {
            Ok(wait) => {
                self.outage = 0;
                wait
            }
            Err(error) => {
                tracing::warn!(%error, "failed to list unused credentials");
                self.outage = self.outage.saturating_add(1);
                pause(&self.backends, self.outage)
            }
        }
    }

    async fn take_back(&mut self) -> Result<Duration, Error> {
        let projects = self.delete_user_projects().await?;
        // If the cloud does not respond now, do not call it for the others.
        let credentials = if projects == Round::Refused { Round::Refused } else { self.revoke_credentials().await? };
        if projects == Round::Full || credentials == Round::Full {
            return Ok(Duration::ZERO);
        }
        let now = self.backends.clock.monotonic();
        let next = self.credentials.next(now).into_iter().chain(self.projects.next(now)).min();
        Ok(next.map_or(RARELY, |next| next.clamp(BETWEEN_RETRIES, RARELY)))
    }

    async fn delete_user_projects(&mut self) -> Result<Round, Error> {
        let unused = self.backends.store.unused_user_projects(self.projects.limit()).await?;
        let due = self.projects.due(unused, |unused| unused.stack, self.backends.clock.monotonic());
        for unused in &due {
            match self.backends.clouds.delete_user_project(&unused.project).await {
                Ok(()) => {
                    self.backends.store.forget_user_project(unused.stack).await?;
                    self.projects.done(unused.stack);
                    tracing::debug!(stack = %unused.stack, project = unused.project, "deleted the project of the users");
                }
                Err(failure) => {
                    let (times, pause) = self.projects.note(unused.stack, &self.backends);
                    let (stack, project) = (unused.stack, &unused.project);
                    tracing::warn!(%stack, project, %failure, times, ?pause, "failed to delete the project of the users");
                    if failure.is_passing() {
                        return Ok(Round::Refused);
                    }
                }
            }
        }
        Ok(Round::of(due.len()))
    }

    async fn revoke_credentials(&mut self) -> Result<Round, Error> {
        let unused = self.backends.store.unused_credentials(UNUSED_AFTER, self.credentials.limit()).await?;
        let due = self.credentials.due(unused, |unused| unused.id, self.backends.clock.monotonic());
        for unused in &due {
            let id = unused.id;
            // A new stack may share them meanwhile.
            if !self.backends.store.retire_credentials(unused).await? {
                continue;
            }
            match self.backends.clouds.revoke(unused).await {
                Ok(()) => {
                    self.backends.store.delete_credentials(id).await?;
                    self.credentials.done(id);
                    tracing::debug!(credentials = %id, "revoked unused credentials");
                }
                Err(failure) => {
                    let (times, pause) = self.credentials.note(id, &self.backends);
                    tracing::warn!(credentials = %id, %failure, times, ?pause, "failed to revoke unused credentials");
                    if failure.is_passing() {
                        return Ok(Round::Refused);
                    }
                }
            }
        }
        Ok(Round::of(due.len()))
    }
}

/// How a round ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Round {
    /// All that was due was tried.
    Done,
    /// There may be more.
    Full,
    /// The cloud does not respond now.
    Refused,
}

impl Round {
    fn of(tried: usize) -> Self {
        if tried < PER_ROUND { Self::Done } else { Self::Full }
    }
}

/// What could not be deleted, and when it is retried.
struct Retries<K>(BTreeMap<K, Retry>);

#[derive(Clone, Copy, Default)]
struct Retry {
    /// Number of failures.
    times: u32,
    /// Time of the next attempt, by the monotonic clock.
    at: Duration,
}

impl<K> Default for Retries<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Copy> Retries<K> {
    /// How many to list: what fails repeatedly must not hide the others.
    fn limit(&self) -> usize {
        PER_ROUND.saturating_add(self.0.len())
    }

    /// Those of the listed ones that are tried now.
    fn due<T>(&mut self, listed: Vec<T>, key: impl Fn(&T) -> K, now: Duration) -> Vec<T> {
        let keys: BTreeSet<K> = listed.iter().map(&key).collect();
        self.0.retain(|id, _| keys.contains(id));
        let is_due = |one: &T| self.0.get(&key(one)).is_none_or(|retry| retry.at <= now);
        listed.into_iter().filter(is_due).take(PER_ROUND).collect()
    }

    fn done(&mut self, key: K) {
        self.0.remove(&key);
    }

    /// Records a failure: their number, and the delay until the next attempt.
    fn note(&mut self, key: K, backends: &Backends) -> (u32, Duration) {
        let times = self.0.get(&key).map_or(0, |retry| retry.times).saturating_add(1);
        let pause = pause(backends, times);
        self.0.insert(key, Retry { times, at: backends.clock.monotonic() + pause });
        (times, pause)
    }

    /// The time until the next attempt.
    fn next(&self, now: Duration) -> Option<Duration> {
        self.0.values().map(|retry| retry.at.saturating_sub(now)).min()
    }
}

fn pause(backends: &Backends, times: u32) -> Duration {
    let doubled = FIRST_RETRY.saturating_mul(2_u32.saturating_pow(times.saturating_sub(1)));
    backends.chance.jitter(doubled.min(LAST_RETRY))
}
