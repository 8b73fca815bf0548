//! Housekeeping: forgets what is old, and takes back credentials that no live stack uses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kiln_resource::{CredentialsId, Failure};
use kiln_store::{Doorbell, Error, Retention, UnusedCredentials};

use crate::backends::Backends;
use crate::options::Options;

/// Credentials that no stack refers to are taken back when they have been so for this long: a request may be about to
/// attach them, and the engine of a stack whose credentials were replaced may have begun something with the old ones.
/// Those of a deleted stack are taken back at once.
pub const UNUSED_AFTER: Duration = Duration::from_hours(1);

/// Between two looks for unused credentials where nothing happens.
const RARELY: Duration = Duration::from_mins(10);
/// Between news of a stack, which may have been deleted, and a look.
const SOON: Duration = Duration::from_secs(10);
/// Until credentials that could not be taken back are tried again; doubles with each time.
const FIRST_RETRY: Duration = Duration::from_secs(10);
/// And at most this.
const LAST_RETRY: Duration = Duration::from_hours(1);
/// Credentials taken back in one round.
const PER_ROUND: usize = 100;

/// Keeps house for as long as it is awaited. Every engine does so: what two do at once is done once.
pub async fn run(backends: Backends, options: Arc<Options>) {
    tokio::join!(forget(&backends, &options), sweep(&backends));
}

/// Forgets what is old.
async fn forget(backends: &Backends, options: &Options) {
    loop {
        let now = backends.clock.now();
        let retention = Retention { deleted_before: now - options.keep_deleted, events_per_stack: options.max_events };
        match backends.store.forget(&retention).await {
            // A piece at a time, with breath in between, so that nobody waits for it.
            Ok(rows) if rows > 0 => backends.clock.sleep(Duration::from_millis(200)).await,
            Ok(_) => backends.clock.sleep(Duration::from_mins(10)).await,
            Err(error) => {
                tracing::warn!(%error, "could not forget old stacks");
                backends.clock.sleep(Duration::from_mins(1)).await;
            }
        }
    }
}

/// Takes back what is not used, soon after something happened to a stack and else rarely.
async fn sweep(backends: &Backends) {
    let bell = backends.store.doorbell();
    let mut sweep = CredentialsSweep::new(backends.clone());
    loop {
        let next = sweep.round().await;
        tokio::select! {
            // In a fixed order, so that a seed of the simulation replays.
            biased;
            () = backends.clock.sleep(next) => {}
            // Not at once: much happens together, and other engines hear it too.
            () = news(&*bell) => backends.clock.sleep(backends.chance.jitter(SOON)).await,
        }
    }
}

/// Waits until something happens to a stack. That nothing was heard for a while is no news: whoever deletes a stack
/// rings in this process.
async fn news(bell: &dyn Doorbell) {
    while bell.wait().await.is_empty() {}
}

/// Takes back credentials that no live stack uses, then forgets them. Nothing is forgotten before it is certainly gone,
/// so that nothing is lost whenever it breaks off; what fails is tried again, by this engine or another.
pub struct CredentialsSweep {
    backends: Backends,
    /// What could not be taken back.
    failed: BTreeMap<CredentialsId, Retry>,
    /// How often in a row the store did not answer.
    outage: u32,
}

#[derive(Clone, Copy, Default)]
struct Retry {
    /// How often it failed.
    times: u32,
    /// Not before this, by the monotonic clock.
    at: Duration,
}

impl CredentialsSweep {
    /// A sweep that has done nothing yet.
    pub fn new(backends: Backends) -> Self {
        Self { backends, failed: BTreeMap::new(), outage: 0 }
    }

    /// Takes back what is unused now; gives how long to wait until the next round.
    pub async fn round(&mut self) -> Duration {
        match self.take_back().await {
            Ok(wait) => {
                self.outage = 0;
                wait
            }
            Err(error) => {
                tracing::warn!(%error, "could not look for unused credentials");
                self.outage = self.outage.saturating_add(1);
                self.pause(self.outage)
            }
        }
    }

    async fn take_back(&mut self) -> Result<Duration, Error> {
        // Those that fail again and again must not hide the others.
        let limit = PER_ROUND.saturating_add(self.failed.len());
        let unused = self.backends.store.unused_credentials(UNUSED_AFTER, limit).await?;
        self.failed.retain(|id, _| unused.iter().any(|credentials| credentials.id == *id));
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
                    tracing::debug!(credentials = %id, "unused credentials were taken back");
                }
                Err(failure) => {
                    self.note(id, &failure);
                    // Who does not answer now need not be asked for all the others, either.
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
        tracing::warn!(credentials = %id, %failure, times, ?pause, "unused credentials could not be taken back");
        self.failed.insert(id, Retry { times, at: self.backends.clock.monotonic() + pause });
    }

    fn until_retry(&self) -> Duration {
        let now = self.backends.clock.monotonic();
        let next = self.failed.values().map(|retry| retry.at.saturating_sub(now)).min();
        next.map_or(RARELY, |next| next.min(RARELY))
    }

    fn pause(&self, times: u32) -> Duration {
        let doubled = FIRST_RETRY.saturating_mul(2_u32.saturating_pow(times.saturating_sub(1)));
        self.backends.chance.jitter(doubled.min(LAST_RETRY))
    }
}
