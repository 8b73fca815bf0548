//! The use cases of the store.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use kiln_resource::{SoftwareChange, State};
use kiln_value::Secret;

use crate::duration::Durations;
use crate::quota::Quotas;
use crate::sql::{WITH_GUARDS, WITH_PLANS};
use crate::{
    Announcement, Backlog, Claimable, CredentialsId, DesiredText, Digest, Distinct, EngineId, EngineLock, Event,
    EventId, EventQuery, EventSpan, GuardStore, Lease, Message, MessageId, NewStack, OperationStore, Orphan,
    OrphanStore, OutboxStore, PlanId, PlanStore, PluginRun, Resource, ResourceId, Silent, Snapshot, SnapshotId,
    SoftwareStore, Stack, StackId, StackQuery, StackRequest,
};

/// What an error was caused by: another error, or a text.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Errors of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The project has a live root stack with this name.
    #[error("a stack named {0} exists")]
    NameTaken(String),
    /// An object is taken over that belongs to another resource.
    #[error("the object {id} belongs to {owner}")]
    ObjectTaken {
        /// The ID of the object.
        id: String,
        /// Who has it: `the resource net of the stack web`.
        owner: String,
    },
    /// The lease is not the current one: stop working on the stack.
    #[error("the lease on stack {0} is not current")]
    Stale(StackId),
    /// The stack does not have the expected generation, or its tree not the expected version.
    #[error("stack {0} was changed meanwhile")]
    Changed(StackId),
    /// The plan does not exist, is not ready, or has expired.
    #[error("plan {0} cannot be used")]
    PlanUsed(PlanId),
    /// The config has deployments.
    #[error("software config {0} is referenced")]
    Referenced(String),
    /// The row does not exist.
    #[error("{0} not found")]
    NotFound(String),
    /// Stored data cannot be read.
    #[error("stored data is damaged: {0}")]
    Damaged(#[source] Cause),
    /// The database permanently rejects the data: too long, or not representable.
    #[error("the database cannot hold this: {0}")]
    Invalid(#[source] Cause),
    /// The database, or the key for its secrets, cannot be used.
    #[error("the database cannot be used: {0}")]
    Unusable(#[source] Cause),
    /// The database does not answer. If the outcome of a write is unknown, it may have happened.
    #[error("the database does not answer{}", if *may_have_happened { "; the change may have been made" } else { "" })]
    Unavailable {
        /// What was seen.
        #[source]
        why: Cause,
        /// Whether something was sent that the database may have done.
        may_have_happened: bool,
    },
    /// The database failed, even after retries.
    #[error("database: {0}")]
    Database(#[source] Cause),
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Settle {
    /// The finished generation. If the stack has a higher one, the settle is ignored.
    pub generation: i64,
    /// The final state.
    pub state: State,
    /// The reason.
    pub reason: String,
    /// Whether the stack is deleted: the time of deletion is set, and the name is released.
    pub deleted: bool,
    /// Whether the desired state was reached: a later rollback returns to it.
    pub reached: bool,
    /// Current time.
    pub now: Timestamp,
}

/// Writes of the engine that holds a lease, in one transaction.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Rows to insert or replace, by id.
    pub save: Distinct<Resource>,
    /// Rows to delete.
    pub remove: Vec<ResourceId>,
    /// Objects whose rows are removed here without a delete.
    pub orphans: Vec<Orphan>,
    /// Events to append, in order.
    pub events: Vec<Event>,
    /// What to announce on the message bus, if there is one.
    pub announcements: Vec<Announcement>,
    /// Runs of lifecycle plug-ins after an operation.
    pub plugin_runs: Vec<PluginRun>,
    /// Sets [`crate::Details::admitted`], if the stack has this generation.
    pub admit: Option<i64>,
    /// Nested stacks to create.
    pub children: Vec<NewStack>,
    /// Requests to nested stacks; requests to deleted stacks are dropped.
    pub requests: Vec<(StackId, StackRequest)>,
    /// Messages of this stack that were handled or are obsolete: they are removed from the inbox.
    pub handled: Vec<MessageId>,
    /// Messages of this stack to itself.
    pub timers: Vec<Message>,
    /// Messages to other stacks; messages to deleted stacks are dropped.
    pub send: Vec<Message>,
    /// Snapshots of this stack to insert or replace, by ID.
    pub snapshots: Distinct<Snapshot>,
    /// Snapshots of this stack to delete.
    pub remove_snapshots: Vec<SnapshotId>,
    /// Changes of software configs and deployments, in order; a config with deployments is kept.
    pub software: Vec<SoftwareChange>,
    /// The project of the stack's users, once it exists.
    pub user_project: Option<String>,
    /// The end of a request.
    pub settle: Option<Settle>,
    /// The request to this stack that follows the end: a rollback. It is dropped if the stack does not have its
    /// generation.
    pub rollback: Option<StackRequest>,
}

impl Batch {
    /// The nested stacks whose resources may have another name than before.
    pub(crate) fn moved_owners(&self) -> impl Iterator<Item = (StackId, &Resource)> {
        let moved = self.save.iter().filter(|row| row.has_moved());
        moved.filter_map(|row| Some((row.child?, row)))
    }

    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.save.is_empty()
            && self.remove.is_empty()
            && self.orphans.is_empty()
            && self.events.is_empty()
            && self.announcements.is_empty()
            && self.plugin_runs.is_empty()
            && self.admit.is_none()
            && self.children.is_empty()
            && self.requests.is_empty()
            && self.handled.is_empty()
            && self.timers.is_empty()
            && self.send.is_empty()
            && self.snapshots.is_empty()
            && self.remove_snapshots.is_empty()
            && self.software.is_empty()
            && self.user_project.is_none()
            && self.settle.is_none()
            && self.rollback.is_none()
    }

    /// Whether it stores events, of this stack or of nested stacks.
    pub(crate) fn has_events(&self) -> bool {
        !(self.events.is_empty() && self.children.is_empty() && self.requests.is_empty() && self.rollback.is_none())
    }

    /// The other stacks that have work after this batch is written.
    pub(crate) fn rings(&self) -> Vec<StackId> {
        let messages = self.send.iter().filter(|message| message.is_due_at_once());
        let asked = self.children.iter().map(|child| child.id).chain(self.requests.iter().map(|(child, _)| *child));
        asked.chain(messages.map(|message| message.stack)).collect()
    }
}

/// The state of a nested stack, for its parent.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The nested stack.
    pub id: StackId,
    /// The row of its parent resource.
    pub resource: ResourceId,
    /// Action and status.
    pub state: State,
    /// Reason.
    pub reason: String,
    /// Number of the last request.
    pub generation: i64,
    /// Number of the last finished request.
    pub settled: i64,
    /// Whether it is deleted.
    pub deleted: bool,
}

impl Summary {
    /// Whether the last request has ended.
    pub fn has_ended(&self) -> bool {
        self.settled >= self.generation || self.deleted
    }
}

/// Credentials that no live stack refers to.
#[derive(Clone, Debug)]
pub struct UnusedCredentials {
    /// Their ID.
    pub id: CredentialsId,
    /// Data to find them where they were created.
    pub plan: Secret<String>,
    /// The credentials, if they are known.
    pub credentials: Option<Secret<String>>,
    /// When they were last stored, attached or detached, by the database's clock.
    pub touched: i64,
}

/// The project of the users of a deleted stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedUserProject {
    /// The stack.
    pub stack: StackId,
    /// ID of the project.
    pub project: String,
}

/// What a new stack meets in its project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Whether a live root stack has its name.
    pub is_taken: bool,
    /// The number of live root stacks.
    pub stacks: u64,
    /// See [`Stack::guards`].
    pub guards: i64,
}

/// A running engine, for the list of services.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineInfo {
    /// Its ID.
    pub id: EngineId,
    /// Host name.
    pub hostname: String,
    /// Process ID.
    pub pid: u32,
    /// Time of its start.
    pub started: Timestamp,
    /// Time of its last report, by the database's clock.
    pub seen: Timestamp,
    /// Seconds between reports; 0: the engine has ended, and its entry is removed by this or the next report.
    pub interval: u32,
    /// The version of the schema that it knows, and so what it can do; 0: an old one.
    pub schema: usize,
}

impl EngineInfo {
    /// Whether it is alive: it has not stopped, and has missed at most one report.
    pub fn is_up(&self, now: Timestamp) -> bool {
        self.interval > 0 && now.duration_since(self.seen) <= SignedDuration::from_secs(2 * i64::from(self.interval))
    }

    /// Whether it keeps to plans.
    pub fn keeps_plans(&self) -> bool {
        self.schema >= WITH_PLANS
    }

    /// Whether it heeds guards.
    pub fn heeds_guards(&self) -> bool {
        self.schema >= WITH_GUARDS
    }
}

/// A page of resources without their data.
#[derive(Clone, Debug, Default)]
pub struct BriefResources {
    /// The resources.
    pub rows: Vec<Resource>,
    /// The place of the last one, to ask for the next page.
    pub last: Option<u64>,
}

/// Retention limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Retention {
    /// Purge stacks that were deleted before this time, with their events and resources.
    pub deleted_before: Timestamp,
    /// Purge the oldest operations of each stack above this number; 0: none.
    pub operations: u64,
}

/// A step of a purge of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventPurge {
    /// Events whose stacks were looked at.
    pub looked_at: u64,
    /// Deleted events.
    pub deleted: u64,
    /// The number of the event after which the next step begins.
    pub after: u64,
    /// Whether the next step has something to do.
    pub has_more: bool,
}

/// The numbers of things in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Live stacks, with nested ones, by action and status.
    pub stacks: Vec<(String, String, u64)>,
    /// Leases that engines hold.
    pub leases: u64,
    /// Stacks whose request is not done.
    pub pending: u64,
    /// The age of the oldest of these requests in microseconds, by the database's clock.
    pub oldest: Option<u64>,
    /// Entries of the outbox, without those of webhooks.
    pub outbox: u64,
    /// Events that wait for the receivers of webhooks, which users choose.
    pub webhook_entries: u64,
    /// The age of the oldest entry in microseconds.
    pub outbox_oldest: Option<u64>,
    /// Stacks that are watched and have drifted.
    pub drifted: u64,
}

/// Rings when a stack may have work or news. Rings may be lost, so waiters must also poll.
#[async_trait]
pub trait Doorbell: Send + Sync {
    /// Rings for a stack.
    fn ring(&self, stack: StackId);
    /// Waits for rings since the last call and returns their stacks. An empty list means "look at everything", because
    /// rings were lost or came from another process.
    async fn wait(&self) -> Vec<StackId>;
}

/// Kiln's storage. Implementations handle transactions, their retries, and dialects.
#[async_trait]
pub trait Store: SoftwareStore + OutboxStore + OrphanStore + OperationStore + PlanStore + GuardStore {
    /// Upgrades the schema. Safe to call at every start and from several processes.
    async fn migrate(&self) -> Result<(), Error>;

    // --- requests: who calls the API writes what should be

    /// Creates a stack. This is idempotent: if the ID exists, returns the stack.
    async fn create_stack(&self, stack: NewStack) -> Result<Stack, Error>;
    /// Writes a request to a stack; returns the stack after that.
    async fn request(&self, stack: StackId, request: StackRequest) -> Result<Stack, Error>;
    /// Moves resources between settled stacks that no engine works on; returns the stacks after that. All or nothing:
    /// [`Error::Changed`] names a stack that is not as it was read, that an engine has claimed, or that has messages.
    async fn refactor(&self, refactor: &crate::Refactor) -> Result<Vec<Stack>, Error>;
    /// Sends a message to a stack. This is idempotent by ID, even after the message was handled. The stack can be
    /// claimed as soon as the message is due, even if it is settled. [`Error::NotFound`] if the stack is deleted.
    async fn send(&self, message: &Message) -> Result<(), Error>;

    // --- reading

    /// A stack by ID, including deleted ones.
    async fn stack(&self, id: StackId) -> Result<Option<Stack>, Error>;
    /// A live root stack by project and name.
    async fn stack_by_name(&self, project: &str, name: &str) -> Result<Option<Stack>, Error>;
    /// Stacks; a marker that does not exist is [`Error::NotFound`].
    async fn stacks(&self, query: &StackQuery) -> Result<Vec<Stack>, Error>;
    /// As [`Self::stacks`], only what a list shows.
    async fn stack_summaries(&self, query: &StackQuery) -> Result<Vec<crate::StackSummary>, Error> {
        Ok(self.stacks(query).await?.into_iter().map(Into::into).collect())
    }
    /// The number of stacks, ignoring marker and limit.
    async fn count_stacks(&self, query: &StackQuery) -> Result<u64, Error>;
    /// The room for a new stack with a name. Only with `counts`, the stacks of the project are counted.
    async fn room(&self, project: &str, name: &str, counts: bool) -> Result<Room, Error>;
    /// The quotas of a project that differ from the configuration.
    async fn quotas(&self, _project: &str) -> Result<Quotas, Error> {
        Ok(Quotas::new())
    }
    /// Adds to how long operations of resources took. After an error, some may be counted.
    async fn add_durations(&self, _more: &Durations) -> Result<(), Error> {
        Ok(())
    }
    /// How long operations of resources of these types took.
    async fn durations(&self, _types: &BTreeSet<String>) -> Result<Durations, Error> {
        Ok(Durations::new())
    }
    /// The texts of a desired or previous state.
    async fn desired(&self, desired: &crate::Desired) -> Result<DesiredText, Error>;
    /// One text.
    async fn content(&self, digest: &Digest) -> Result<String, Error>;
    /// The resources of a stack, in order of creation.
    async fn resources(&self, stack: StackId) -> Result<Vec<Resource>, Error>;
    /// The resources of a stack, in order of creation, with [`Stack::writes`] at that moment; `None` if there are none.
    async fn resources_and_writes(&self, stack: StackId) -> Result<(Option<i64>, Vec<Resource>), Error>;
    /// The resources of a stack after one, in order of creation, without operation, definition, metadata, data,
    /// attributes and requirements.
    async fn resources_in_brief(&self, stack: StackId, after: Option<u64>, limit: u64)
    -> Result<BriefResources, Error>;
    /// The resources of several stacks.
    async fn resources_of(&self, stacks: &[StackId]) -> Result<Vec<Resource>, Error>;
    /// The resources of a stack with a name, in order of creation: more than one while a replaced one still exists.
    async fn resources_named(&self, stack: StackId, name: &str) -> Result<Vec<Resource>, Error>;
    /// The number of resources in all stacks of a tree.
    async fn count_resources(&self, root: StackId) -> Result<u64, Error>;
    /// The nested stacks of a stack: live ones, and those deleted since its last request.
    async fn children(&self, parent: StackId) -> Result<Vec<Summary>, Error>;
    /// The nested stacks of a stack whose last request has ended, and whose resource has an operation that may wait for that;
    /// and those of `also` whose last request has ended.
    async fn ended_children(&self, parent: StackId, also: &[StackId]) -> Result<Vec<Summary>, Error>;
    /// A snapshot of a stack, or the data that the stack adopts.
    async fn snapshot(&self, stack: StackId, id: SnapshotId) -> Result<Option<Snapshot>, Error>;
    /// The snapshots of a stack, oldest first.
    async fn snapshots(&self, stack: StackId) -> Result<Vec<Snapshot>, Error>;
    /// Events.
    async fn events(&self, query: &EventQuery) -> Result<Vec<Event>, Error>;
    /// Events with their numbers, in the order of the numbers. The query has no marker. See [`crate::EventReader`].
    async fn numbered_events(&self, span: &EventSpan, query: &EventQuery) -> Result<Vec<(u64, Event)>, Error>;
    /// The number of the last event of each stack of a query, up to a number. The filters of the query do not matter.
    async fn last_events(&self, query: &EventQuery, up_to: u64) -> Result<Vec<(StackId, u64)>, Error>;
    /// The number of an event; [`Error::NotFound`] if it does not exist.
    async fn event_number(&self, id: EventId) -> Result<u64, Error>;
    /// One event.
    async fn event(&self, stack: StackId, id: EventId) -> Result<Option<Event>, Error>;

    // --- the engine's work, under leases

    /// Claims up to `limit` stacks that have work, oldest work first. `won` receives each lease as soon as it is claimed,
    /// also those that were claimed before an error. Work is an unfinished request or a due message. Each claim is one
    /// compare-and-swap. A lease whose owner has no entry in [`Self::engines`] ends when it is not renewed within its time
    /// to live, by the database's clock.
    async fn claim_each(
        &self,
        owner: EngineId,
        ttl: Duration,
        claimable: Claimable<'_>,
        limit: usize,
        won: &mut (dyn FnMut(Lease) + Send),
    ) -> Result<(), Error>;
    /// As [`Self::claim_each`], of all stacks without a lease, or of the given ones.
    async fn claim(&self, owner: EngineId, ttl: Duration, only: &[StackId], limit: usize) -> Result<Vec<Lease>, Error> {
        let mut leases = Vec::new();
        let claimable = if only.is_empty() { Claimable::Free } else { Claimable::Named(only) };
        self.claim_each(owner, ttl, claimable, limit, &mut |lease| leases.push(lease)).await?;
        Ok(leases)
    }
    /// Extends the given leases of an engine; returns those that it still holds. Other leases are not extended.
    async fn renew(&self, owner: EngineId, ttl: Duration, leases: &[Lease]) -> Result<Vec<Lease>, Error>;
    /// Releases leases; no call may be in progress. (A lease with a call that may be in progress must expire instead,
    /// so that the next owner knows about it.)
    async fn release(&self, leases: &[Lease]) -> Result<(), Error>;
    /// Writes a batch if the lease is current, else returns [`Error::Stale`] and writes nothing. Returns the row of the
    /// stack after that, so that the engine sees newer requests.
    async fn commit(&self, lease: Lease, batch: Batch) -> Result<Stack, Error>;

    /// Refuses a row that the database could never store, before what it records is done.
    ///
    /// # Errors
    /// [`Error::Invalid`]
    fn check_size(&self, _row: &Resource) -> Result<(), Error> {
        Ok(())
    }

    /// The same for the texts of a stack.
    fn check_texts(&self, _texts: &DesiredText) -> Result<(), Error> {
        Ok(())
    }

    /// Whether the database limits the size of statements. Only then, [`Store::check_snapshot`] can refuse anything.
    fn limits_sizes(&self) -> bool {
        false
    }

    /// The same for a snapshot.
    fn check_snapshot(&self, _snapshot: &Snapshot) -> Result<(), Error> {
        Ok(())
    }

    /// The messages of a stack that are due by `now` or by the database's clock, sorted by (due, sent, id). This always
    /// includes the message that made the stack claimable, even if the clocks differ.
    async fn due_messages(&self, stack: StackId, now: Timestamp) -> Result<Vec<MessageId>, Error>;
    /// These messages, in the same order, without those that were handled meanwhile. What this version cannot read is kept
    /// and reported, but left out: a kind that it does not know makes no stack claimable, and a damaged message is due
    /// again after some minutes.
    async fn messages(&self, stack: StackId, ids: &[MessageId]) -> Result<Vec<Message>, Error>;
    /// [`Store::messages`] that are due.
    async fn inbox(&self, stack: StackId, now: Timestamp) -> Result<Vec<Message>, Error> {
        let due = self.due_messages(stack, now).await?;
        self.messages(stack, &due).await
    }
    /// The messages of a stack that are not handled yet, due or not. Only with `sizes` their bodies are measured: that reads
    /// the rows, not only an index.
    async fn backlog(&self, stack: StackId, sizes: bool) -> Result<Backlog, Error>;

    // --- credentials, encrypted at rest, recorded before they are made so that none is forgotten

    /// Records that credentials will be created. The plan (JSON) contains the user, and data to find the credentials if
    /// nobody records them.
    async fn plan_credentials(&self, plan: &Secret<String>) -> Result<CredentialsId, Error>;
    /// Stores planned credentials (JSON) once they are known. [`Error::NotFound`] if the plan is deleted.
    async fn keep_credentials(&self, id: CredentialsId, credentials: &Secret<String>) -> Result<(), Error>;
    /// Stores credentials (JSON) that were created without a plan.
    async fn save_credentials(&self, credentials: &Secret<String>) -> Result<CredentialsId, Error> {
        let id = self.plan_credentials(&Secret::new("{}".to_owned())).await?;
        self.keep_credentials(id, credentials).await?;
        Ok(id)
    }
    /// Reads credentials; [`Error::NotFound`] also while they are only planned.
    async fn credentials(&self, id: CredentialsId) -> Result<Secret<String>, Error>;
    /// Up to `limit` credentials that no live stack refers to, oldest first. Those of deleted stacks are listed
    /// immediately. Those that no stack ever referred to, or that a request replaced, are listed after `older_than`, by
    /// the database's clock.
    async fn unused_credentials(&self, older_than: Duration, limit: usize) -> Result<Vec<UnusedCredentials>, Error>;
    /// Reserves unused credentials for their revocation: from now on no stack can get them. False if a stack has got them
    /// since they were listed, because stacks may share credentials.
    async fn retire_credentials(&self, unused: &UnusedCredentials) -> Result<bool, Error>;
    /// Deletes credentials.
    async fn delete_credentials(&self, id: CredentialsId) -> Result<(), Error>;
    /// Up to `limit` projects of the users of deleted stacks, and of their nested stacks.
    async fn unused_user_projects(&self, limit: usize) -> Result<Vec<UnusedUserProject>, Error>;
    /// Removes the project of the users from a deleted stack, after the project was deleted.
    async fn forget_user_project(&self, stack: StackId) -> Result<(), Error>;

    // --- housekeeping

    /// The clock of the database.
    async fn now(&self) -> Result<Timestamp, Error>;
    /// Reports that an engine is alive, or that it has ended ([`EngineInfo::interval`]).
    async fn report(&self, engine: &EngineInfo) -> Result<(), Error>;
    /// The engines that have reported.
    async fn engines(&self) -> Result<Vec<EngineInfo>, Error>;
    /// Whether the database had no room for something in the last minute. A process that only reads does not notice, so this
    /// writes something small from time to time.
    async fn is_full(&self) -> bool {
        false
    }
    /// Takes the lock of a process that runs an engine, which no engine of another process holds alone. Only files have one.
    async fn lock_engines(&self) -> Result<EngineLock, Error> {
        Ok(EngineLock::default())
    }
    /// Forgets an engine, unless it has reported since.
    async fn forget_engine(&self, silent: &Silent) -> Result<(), Error>;
    /// Purges old rows, a limited number per call; returns the number of deleted rows.
    async fn forget(&self, retention: &Retention) -> Result<u64, Error>;
    /// Purges the oldest events of stacks with more than `keep` events, in bounded steps. A step looks at the stacks of some
    /// events after a number, so that each event is looked at once, and not the whole table again and again.
    async fn forget_events(&self, keep: u64, after: u64) -> Result<EventPurge, Error>;

    /// A doorbell of this database. Rings reach every process, if the database can carry them. Each call returns a new
    /// bell that receives all later rings, so every waiter keeps its own.
    fn doorbell(&self) -> std::sync::Arc<dyn Doorbell>;
    /// The number of live stacks by state, and of the leases and stacks with work, for metrics.
    async fn census(&self) -> Result<Census, Error>;
    /// The connections to the database by use, for reports: how many there are, and how many of them are idle.
    fn connections(&self) -> Vec<(&'static str, u32, usize)> {
        Vec::new()
    }
    /// How long the oldest call that is in progress has waited for the database.
    fn oldest_call(&self) -> Duration {
        Duration::ZERO
    }
    /// A doorbell for those who wait for events: it rings after new events are stored, by any process, with the roots of
    /// their stacks.
    fn news(&self) -> std::sync::Arc<dyn Doorbell>;
}
