//! Dependencies of everything that reads or changes stacks, all behind traits.

use std::sync::Arc;
use std::time::Duration;

use kiln_plan::ResourceTypes;
use kiln_resource::{Cloud, Context, Facts, Failure, MessageId, Software, StackId};
use kiln_store::{Message, MessageBody, Stack, Store};

use crate::clock::{Chance, Clock};
use crate::clouds::{Clouds, NoCloud};
use crate::project_threads::ProjectThreads;
use crate::source_cache::SourceCache;
use crate::stopwatch::Stopwatch;
use crate::stored_software::StoredSoftware;

/// Store, resource types, clouds, time and randomness.
#[derive(Clone)]
pub struct Backends {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The resource types and the operator's environment.
    pub resource_types: Arc<ResourceTypes>,
    /// The clouds.
    pub clouds: Arc<dyn Clouds>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of randomness.
    pub chance: Arc<Chance>,
    /// What was read last.
    pub caches: Arc<Caches>,
}

/// What a process knows: what it read last of the store, which is the truth, and what it is doing.
#[derive(Default)]
pub struct Caches {
    /// Parsed templates, environments and files.
    pub sources: SourceCache,
    /// The threads that projects occupy.
    pub threads: ProjectThreads,
    /// How long operations of resources took.
    pub stopwatch: Stopwatch,
}

impl Caches {
    /// Drops what has not been used for a while. `now` is monotonic.
    pub fn expire(&self, now: Duration) {
        self.sources.expire(now);
    }
}

impl Backends {
    /// The cloud for a call of a driver: that of a tree of stacks. A driver that `needs` none gets none.
    pub async fn cloud(&self, root: &Stack, needs: bool) -> Result<Arc<dyn Cloud>, Failure> {
        if needs { self.clouds.cloud(root).await } else { Ok(Arc::new(NoCloud)) }
    }

    /// The software configs and deployments of a project, for a call of a driver.
    pub fn software(&self, project: &str) -> StoredSoftware {
        StoredSoftware::new(&self.store, project)
    }

    /// The input of a driver for a call that is made now.
    pub fn context<'a>(&self, cloud: &'a dyn Cloud, software: &'a dyn Software, facts: &'a Facts) -> Context<'a> {
        Context { cloud, software, facts, now: self.wall_clock(), seed: self.chance.seed(), polls: 0 }
    }

    /// A message that is due at once.
    pub fn message(&self, stack: StackId, resource: Option<String>, body: MessageBody) -> Message {
        let now = self.clock.now();
        Message { id: MessageId(self.chance.uuid()), stack, resource, body, due: now, sent: now }
    }

    /// The current time as drivers get it: seconds since 1970.
    #[expect(clippy::cast_precision_loss, reason = "microseconds of this century fit 53 bits")]
    pub fn wall_clock(&self) -> f64 {
        self.clock.now().as_microsecond() as f64 / 1e6
    }
}
