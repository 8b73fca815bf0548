//! Housekeeping: purges old data, and revokes credentials that no live stack uses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kiln_resource::{CredentialsId, Failure};
use kiln_store::{Doorbell, Error, Retention, UnusedCredentials};
use tokio::sync::watch;

use crate::backends::Backends;
use crate::options::Options;

/// Time after which unused credentials are revoked: a request may be about to attach them, and an engine may have
/// started an operation with replaced credentials. Those of a deleted stack are revoked immediately.
pub const UNUSED_AFTER: Duration = Duration::from_hours(1);

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
/// Maximum number of credentials per round.
const PER_ROUND: usize = 100;

/// Runs until it is dropped. Every engine runs it; concurrent work is idempotent. `sent`: changes when the courier has
/// sent all entries of a lane.
pub async fn run(backends: Backends, options: Arc<Options>, sent: watch::Receiver<()>) {
    tokio::join!(forget(&backends, &options), sweep(&backends, sent));
}

/// Purges old data.
async fn forget(backends: &Backends, options: &Options) {
    loop {
        let now = backends.clock.now();
        let retention = Retention { deleted_before: now - options.keep_deleted, events_per_stack: options.max_events };
        match backends.store.forget(&retention).await {
            // In small steps with pauses, so that others are not blocked.
            Ok(rows) if rows > 0 => backends.clock.sleep(Duration::from_millis(200)).await,
            Ok(_) => backends.clock.sleep(Duration::from_mins(10)).await,
            Err(error) => {
                tracing::warn!(%error, "failed to purge old stacks");
                backends.clock.sleep(Duration::from_mins(1)).await;
            }
        }
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

/// Revokes credentials that no live stack uses, then deletes their rows. A row is deleted only when the trust is
/// certainly deleted, so that an interruption loses nothing. Failures are retried by this engine or another one.
pub struct CredentialsSweep {
    backends: Backends,
    /// Credentials that could not be revoked.
    failed: BTreeMap<CredentialsId, Retry>,
    /// Consecutive failures of the store.
    outage: u32,
}

#[derive(Clone, Copy, Default)]
struct Retry {
    /// Number of failures.
    times: u32,
    /// Time of the next attempt, by the monotonic clock.
    at: Duration,
}

impl CredentialsSweep {
    /// A new sweep.
    pub fn new(backends: Backends) -> Self {
        Self { backends, failed: BTreeMap::new(), outage: 0 }
    }

    /// Revokes unused credentials; returns the delay until the next round.
    pub async fn round(&mut self) -> Duration {
        match self.take_back().await {
            Ok(wait) => {
                self.outage = 0;
                wait
            }
            Err(error) => {
                tracing::warn!(%error, "failed to list unused credentials");
                self.outage = self.outage.saturating_add(1);
                self.pause(self.outage)
            }
        }
    }

    async fn take_back(&mut self) -> Result<Duration, Error> {
        // Credentials that fail repeatedly must not hide the others.
        let limit = PER_ROUND.saturating_add(self.failed.len());
        let unused = self.backends.store.unused_credentials(UNUSED_AFTER, limit).await?;
        let listed: BTreeSet<CredentialsId> = unused.iter().map(|credentials| credentials.id).collect();
        self.failed.retain(|id, _| listed.contains(id));
        let now = self.backends.clock.monotonic();
        let due =
            |credentials: &&UnusedCredentials| self.failed.get(&credentials.id).is_none_or(|retry| retry.at <= now);
        let due: Vec<&UnusedCredentials> = unused.iter().filter(due).take(PER_ROUND).collect();
        for credentials in &due {
            let id = credentials.id;
            match self.backends.clouds.revoke(credentials).await {
                Ok(()) => {
                    self.backends.store.delete_credentials(id).await?;
                    self.failed.remove(&id);
                    tracing::debug!(credentials = %id, "revoked unused credentials");
                }
                Err(failure) => {
                    self.note(id, &failure);
                    // If the cloud does not respond now, do not call it for the others.
                    if failure.is_passing() {
                        return Ok(self.until_retry());
                    }
                }
            }
        }
        Ok(if due.len() < PER_ROUND { self.until_retry() } else { Duration::ZERO })
    }

    fn note(&mut self, id: CredentialsId, failure: &Failure) {
        let times = self.failed.get(&id).map_or(0, |retry| retry.times).saturating_add(1);
        let pause = self.pause(times);
        tracing::warn!(credentials = %id, %failure, times, ?pause, "failed to revoke unused credentials");
        self.failed.insert(id, Retry { times, at: self.backends.clock.monotonic() + pause });
    }

    fn until_retry(&self) -> Duration {
        let now = self.backends.clock.monotonic();
        let next = self.failed.values().map(|retry| retry.at.saturating_sub(now)).min();
        next.map_or(RARELY, |next| next.clamp(BETWEEN_RETRIES, RARELY))
    }

    fn pause(&self, times: u32) -> Duration {
        let doubled = FIRST_RETRY.saturating_mul(2_u32.saturating_pow(times.saturating_sub(1)));
        self.backends.chance.jitter(doubled.min(LAST_RETRY))
    }
}
