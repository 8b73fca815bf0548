//! The use cases.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_resource::State;
use kiln_value::Secret;

use crate::{
    CredentialsId, DesiredText, Digest, EngineId, Event, EventId, EventQuery, Lease, Message, MessageId, NewStack,
    Resource, ResourceId, Stack, StackId, StackQuery, StackRequest,
};

/// Why the store refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A live root stack of the project has this name.
    #[error("a stack named {0} exists")]
    NameTaken(String),
    /// The lease is not (any more) the current one: stop working on the stack.
    #[error("the lease on stack {0} is not current")]
    Stale(StackId),
    /// The stack's generation is not the expected one.
    #[error("stack {0} was changed meanwhile")]
    Changed(StackId),
    /// There is no such row.
    #[error("{0} not found")]
    NotFound(String),
    /// What is stored cannot be read.
    #[error("stored data is damaged: {0}")]
    Damaged(String),
    /// The database refuses the data and always will: too long, or not representable.
    #[error("the database cannot hold this: {0}")]
    Invalid(String),
    /// The database, or the key for its secrets, cannot be used.
    #[error("the database cannot be used: {0}")]
    Unusable(String),
    /// The database failed, also after retries.
    #[error("database: {0}")]
    Database(String),
}

/// How a request of a stack ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Settle {
    /// The generation that came to its end. Nothing of this applies if the stack has a higher one by now.
    pub generation: i64,
    /// The state it ended in.
    pub state: State,
    /// The reason.
    pub reason: String,
    /// The stack is gone: it gets its time of deletion, its name is free.
    pub deleted: bool,
    /// What it should be has been reached: a later rollback returns to it.
    pub reached: bool,
    /// Now.
    pub now: Timestamp,
}

/// Writes of the engine that holds a lease, done all or not at all.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Rows to insert or replace, by id.
    pub save: Vec<Resource>,
    /// Rows to remove.
    pub remove: Vec<ResourceId>,
    /// Events to append, in order.
    pub events: Vec<Event>,
    /// Nested stacks to make.
    pub children: Vec<NewStack>,
    /// Requests to nested stacks; one to a stack that is gone is dropped.
    pub requests: Vec<(StackId, StackRequest)>,
    /// Messages of this stack that were handled, or are not wanted any more: they leave the inbox.
    pub handled: Vec<MessageId>,
    /// Messages of this stack to itself.
    pub timers: Vec<Message>,
    /// Messages to other stacks; one to a stack that is gone is dropped.
    pub send: Vec<Message>,
    /// A change of the stack's state on the way (`UPDATE_FAILED` before a rollback), with `desired` going back to
    /// `previous`: only if the generation is still this. The generation stays.
    pub turn: Option<Turn>,
    /// The end of a request.
    pub settle: Option<Settle>,
}

/// A turn within a request: from UPDATE to ROLLBACK.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Only if the stack's generation is still this.
    pub generation: i64,
    /// New state.
    pub state: State,
    /// New reason.
    pub reason: String,
}

impl Batch {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.save.is_empty()
            && self.remove.is_empty()
            && self.events.is_empty()
            && self.children.is_empty()
            && self.requests.is_empty()
            && self.handled.is_empty()
            && self.timers.is_empty()
            && self.send.is_empty()
            && self.turn.is_none()
            && self.settle.is_none()
    }

    /// The other stacks that have something to do when this is written.
    pub(crate) fn rings(&self) -> Vec<StackId> {
        let messages = self.send.iter().filter(|message| message.is_due_at_once());
        let asked = self.children.iter().map(|child| child.id).chain(self.requests.iter().map(|(child, _)| *child));
        asked.chain(messages.map(|message| message.stack)).collect()
    }
}

/// A nested stack's state, for its parent.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The nested stack.
    pub id: StackId,
    /// The resource row it stands for.
    pub resource: ResourceId,
    /// Action and status.
    pub state: State,
    /// Reason.
    pub reason: String,
    /// Number of the last request.
    pub generation: i64,
    /// Number of the last request that ended.
    pub settled: i64,
    /// Whether it is gone.
    pub deleted: bool,
}

/// Credentials that no live stack refers to.
#[derive(Clone, Debug)]
pub struct UnusedCredentials {
    /// Their id.
    pub id: CredentialsId,
    /// By what they can be found where they were made.
    pub plan: Secret<String>,
    /// The credentials, if they came to be known.
    pub credentials: Option<Secret<String>>,
}

/// A running engine, for the list of services.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineInfo {
    /// Its id.
    pub id: EngineId,
    /// Host name.
    pub hostname: String,
    /// Process.
    pub pid: u32,
    /// When it started.
    pub started: Timestamp,
    /// When it last reported, by the database's clock.
    pub seen: Timestamp,
    /// Seconds between reports.
    pub interval: u32,
}

/// What may be forgotten.
#[derive(Clone, Debug, PartialEq)]
pub struct Retention {
    /// Stacks deleted before this, with their events and resources.
    pub deleted_before: Timestamp,
    /// Events beyond so many of one stack, the oldest first; 0 keeps all.
    pub events_per_stack: u64,
}

/// Rings when a stack may have work or news. A ring may be lost: who waits also looks from time to time.
#[async_trait]
pub trait Doorbell: Send + Sync {
    /// Rings for a stack.
    fn ring(&self, stack: StackId);
    /// Waits for rings since the last call and gives the stacks rung for; an empty list means "look at everything"
    /// (rings were lost or come from another process).
    async fn wait(&self) -> Vec<StackId>;
}

/// What Kiln remembers. Transactions, retries of busy or deadlocked ones, and dialects are inside.
#[async_trait]
pub trait Store: Send + Sync {
    /// Brings the schema up to date. Safe to call at every start and from several processes.
    async fn migrate(&self) -> Result<(), Error>;

    // --- requests: who calls the API writes what should be

    /// Makes a stack; once for each id: if it was made before, gives it as it is.
    async fn create_stack(&self, stack: NewStack) -> Result<Stack, Error>;
    /// Asks something of a stack; gives it as it is then.
    async fn request(&self, stack: StackId, request: StackRequest) -> Result<Stack, Error>;
    /// Sends a message to a stack; once for each id, even if the message was handled meanwhile. The stack can be
    /// claimed as soon as the message is due, also if it is settled. [`Error::NotFound`] if the stack is gone.
    async fn send(&self, message: &Message) -> Result<(), Error>;

    // --- reading

    /// A stack by id, deleted ones too.
    async fn stack(&self, id: StackId) -> Result<Option<Stack>, Error>;
    /// A live root stack by project and name.
    async fn stack_by_name(&self, project: &str, name: &str) -> Result<Option<Stack>, Error>;
    /// Stacks; a marker that does not exist is [`Error::NotFound`].
    async fn stacks(&self, query: &StackQuery) -> Result<Vec<Stack>, Error>;
    /// How many stacks there are, without marker and limit.
    async fn count_stacks(&self, query: &StackQuery) -> Result<u64, Error>;
    /// The texts of what a stack should be, or was before.
    async fn desired(&self, desired: &crate::Desired) -> Result<DesiredText, Error>;
    /// One text.
    async fn content(&self, digest: &Digest) -> Result<String, Error>;
    /// The resources of a stack, in the order they were made.
    async fn resources(&self, stack: StackId) -> Result<Vec<Resource>, Error>;
    /// The resources of several stacks at once.
    async fn resources_of(&self, stacks: &[StackId]) -> Result<Vec<Resource>, Error>;
    /// How many resources all stacks of a tree have.
    async fn count_resources(&self, root: StackId) -> Result<u64, Error>;
    /// The nested stacks of a stack that stand for its resources, live and deleted since its last request.
    async fn children(&self, parent: StackId) -> Result<Vec<Summary>, Error>;
    /// Events.
    async fn events(&self, query: &EventQuery) -> Result<Vec<Event>, Error>;
    /// One event.
    async fn event(&self, stack: StackId, id: EventId) -> Result<Option<Event>, Error>;

    // --- the engine's work, under leases

    /// Claims up to `limit` stacks that have work to do and no current lease (all such, or only the given ones);
    /// the oldest work first. Work is a request that has not come to its end, or a message that is due. Each claim is
    /// one compare-and-swap judged by the database's clock.
    async fn claim(&self, owner: EngineId, ttl: Duration, only: &[StackId], limit: usize) -> Result<Vec<Lease>, Error>;
    /// Extends the given leases of an engine; gives those of them that it still holds. A lease that is not named is
    /// not extended: what nobody works on runs out.
    async fn renew(&self, owner: EngineId, ttl: Duration, leases: &[Lease]) -> Result<Vec<Lease>, Error>;
    /// Gives leases back; there must be no call under way. (A lease under which a call may be under way is left to run
    /// out, so that the next owner knows.)
    async fn release(&self, leases: &[Lease]) -> Result<(), Error>;
    /// Writes a batch if the lease is current, else [`Error::Stale`] and nothing is written.
    /// Gives the stack's row as it is after that, so that the engine sees a newer request.
    async fn commit(&self, lease: Lease, batch: Batch) -> Result<Stack, Error>;

    /// The messages of a stack that are due, by `now` or by the database's clock, in the order of (due, sent, id). So
    /// what made a stack claimable is always among them, however far the clocks are apart.
    async fn inbox(&self, stack: StackId, now: Timestamp) -> Result<Vec<Message>, Error>;

    // --- credentials, encrypted at rest, recorded before they are made so that none is forgotten

    /// Records that credentials are about to be made. The plan (JSON) says for whom, and by what mark they can be found
    /// if nobody comes to say what they are.
    async fn plan_credentials(&self, plan: &Secret<String>) -> Result<CredentialsId, Error>;
    /// Stores planned credentials (JSON): now they are known. [`Error::NotFound`] if the plan is gone.
    async fn keep_credentials(&self, id: CredentialsId, credentials: &Secret<String>) -> Result<(), Error>;
    /// Stores credentials (JSON) that were made without a plan.
    async fn save_credentials(&self, credentials: &Secret<String>) -> Result<CredentialsId, Error> {
        let id = self.plan_credentials(&Secret::new("{}".to_owned())).await?;
        self.keep_credentials(id, credentials).await?;
        Ok(id)
    }
    /// Reads credentials; [`Error::NotFound`] also while they are only planned.
    async fn credentials(&self, id: CredentialsId) -> Result<Secret<String>, Error>;
    /// Up to `limit` credentials that no live stack refers to, the oldest first: those of a deleted stack at once;
    /// those that no stack ever referred to, or that a request replaced, when that is `older_than` ago by the
    /// database's clock.
    async fn unused_credentials(&self, older_than: Duration, limit: usize) -> Result<Vec<UnusedCredentials>, Error>;
    /// Forgets credentials.
    async fn delete_credentials(&self, id: CredentialsId) -> Result<(), Error>;

    // --- housekeeping

    /// Reports that an engine lives; forgets those long silent.
    async fn report(&self, engine: &EngineInfo) -> Result<(), Error>;
    /// The engines that reported.
    async fn engines(&self) -> Result<Vec<EngineInfo>, Error>;
    /// Forgets what may be forgotten, a bounded piece at a time; gives how many rows went.
    async fn forget(&self, retention: &Retention) -> Result<u64, Error>;

    /// A doorbell of this database: rings reach every process where the database can carry them. Each call gives a
    /// bell of its own, which hears all rings from then on, so that every waiter keeps one.
    fn doorbell(&self) -> std::sync::Arc<dyn Doorbell>;
}
