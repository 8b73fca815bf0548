//! The state of the cloud: one value behind one lock, changed by plain functions.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::time::Instant;
use uuid::Uuid;

use crate::builder::Options;
use crate::cinder::Cinder;
use crate::fault::BuildFault;
use crate::glance::Glance;
use crate::keystone::Keystone;
use crate::lag::Lags;
use crate::neutron::Neutron;
use crate::nouns::Nouns;
use crate::nova::Nova;

/// The state of the cloud.
#[derive(Debug)]
pub(crate) struct CloudState {
    pub(crate) options: Options,
    /// `http://address:port`, without a trailing slash.
    pub(crate) base: String,
    /// How often it was restored.
    pub(crate) restored: u64,
    pub(crate) keystone: Keystone,
    pub(crate) nova: Nova,
    pub(crate) neutron: Neutron,
    pub(crate) cinder: Cinder,
    pub(crate) glance: Glance,
    pub(crate) nouns: Nouns,
    /// Objects that are not listed yet.
    pub(crate) lags: Lags,
    /// Faults for builds that the current request starts.
    pub(crate) build_fault: BuildFault,
    clock: Clock,
    chance: StdRng,
    agenda: Agenda,
}

/// A wall clock that follows tokio's time, so that a paused runtime also controls expiry and timestamps.
#[derive(Clone, Copy, Debug)]
struct Clock {
    epoch: Timestamp,
    start: Instant,
}

impl Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the cloud's clock starts at the system time and then follows tokio's time"
    )]
    fn start(epoch: Option<Timestamp>) -> Self {
        Clock { epoch: epoch.unwrap_or_else(Timestamp::now), start: Instant::now() }
    }
}

type Job = Box<dyn FnOnce(&mut CloudState) + Send>;

/// Scheduled jobs. Due jobs run before the next request, so that an idle cloud uses no resources.
#[derive(Default)]
struct Agenda {
    jobs: BTreeMap<(Instant, u64), Job>,
    added: u64,
}

impl fmt::Debug for Agenda {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Agenda").field("jobs", &self.jobs.len()).field("added", &self.added).finish()
    }
}

impl CloudState {
    /// A cloud with its initial content.
    pub(crate) fn new(options: Options, base: String) -> Self {
        let mut world = Self::empty(options, base, 0);
        crate::contents::furnish(&mut world);
        world
    }

    /// A cloud without any object, not even accounts.
    pub(crate) fn empty(options: Options, base: String, restored: u64) -> Self {
        CloudState {
            base,
            restored,
            keystone: Keystone::new(),
            nova: Nova::new(),
            neutron: Neutron::new(),
            cinder: Cinder::new(),
            glance: Glance::new(),
            nouns: Nouns::new(),
            lags: Lags::default(),
            build_fault: BuildFault::default(),
            clock: Clock::start(options.epoch),
            chance: StdRng::seed_from_u64(options.seed.wrapping_add(restored)),
            agenda: Agenda::default(),
            options,
        }
    }

    /// A copy that changes independently. Builds that are in progress are completed first.
    pub(crate) fn fork(&mut self) -> Self {
        self.settle_all();
        CloudState {
            options: self.options.clone(),
            base: self.base.clone(),
            restored: self.restored,
            keystone: self.keystone.clone(),
            nova: self.nova.clone(),
            neutron: self.neutron.clone(),
            cinder: self.cinder.clone(),
            glance: self.glance.clone(),
            nouns: self.nouns.clone(),
            lags: self.lags.clone(),
            build_fault: self.build_fault,
            clock: self.clock,
            chance: self.chance.clone(),
            agenda: Agenda::default(),
        }
    }

    /// A new ID with dashes.
    pub(crate) fn uuid(&mut self) -> String {
        uuid::Builder::from_random_bytes(self.chance.random()).into_uuid().to_string()
    }

    /// A new ID in Keystone's format: 32 hexadecimal digits.
    pub(crate) fn hex_id(&mut self) -> String {
        uuid::Builder::from_random_bytes(self.chance.random()).into_uuid().simple().to_string()
    }

    /// Random bytes.
    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.chance.fill(&mut bytes[..]);
        bytes
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.epoch.checked_add(self.clock.start.elapsed()).unwrap_or(Timestamp::MAX)
    }

    /// The current time in the format of Nova, Neutron and Glance.
    pub(crate) fn stamp(&self) -> String {
        self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// The current time in the format of Cinder (and of Nova's launch times).
    pub(crate) fn micro_stamp(&self) -> String {
        self.now().strftime("%Y-%m-%dT%H:%M:%S.000000").to_string()
    }

    /// Schedules `job` after `delay`.
    pub(crate) fn after(&mut self, delay: Duration, job: impl FnOnce(&mut CloudState) + Send + 'static) {
        self.agenda.added += 1;
        self.agenda.jobs.insert((Instant::now() + delay, self.agenda.added), Box::new(job));
    }

    /// Runs due jobs in order.
    pub(crate) fn settle(&mut self) {
        let now = Instant::now();
        while self.agenda.jobs.first_key_value().is_some_and(|((due, _), _)| *due <= now) {
            if let Some((_, job)) = self.agenda.jobs.pop_first() {
                job(self);
            }
        }
    }

    /// Runs all jobs now, and those that they schedule. Builds that never end remain.
    pub(crate) fn settle_all(&mut self) {
        const ROUNDS: usize = 20;
        for _ in 0..ROUNDS {
            for (_, job) in std::mem::take(&mut self.agenda.jobs) {
                job(self);
            }
        }
    }
}

/// Whether a string is a UUID with dashes.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}

/// Whether a string is a UUID with or without dashes, which is what oslo accepts.
pub(crate) fn is_uuid_like(text: &str) -> bool {
    is_uuid(text) || (text.len() == 32 && Uuid::try_parse(text).is_ok())
}
