//! A store in memory that models the one in a database, for simulations.
//!
//! It is deterministic: no threads, no randomness, no time except the given clock, and only ordered maps. Each use case
//! runs without interruption; pauses, failures and lost rings are added by wrappers. The test suite of the store
//! (`tests/suite`) runs on it as on every database.

mod commit;
mod credentials;
mod drift;
mod guards;
mod housekeeping;
mod inbox;
mod leases;
mod listing;
mod operations;
mod orphans;
mod outbox;
mod plans;
mod quotas;
mod reading;
mod refactor;
mod requests;
mod software;
mod state;
mod webhooks;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_value::Secret;

pub use self::state::RowsRead;
use self::state::State;
use crate::doorbell::{Hub, Reach};
use crate::duration::Durations;
use crate::limits::CLAIMS;
use crate::quota::Quotas;
use crate::{
    Backlog, Batch, BriefResources, Census, Claimable, CredentialsId, Desired, DesiredText, Digest, Doorbell, EngineId,
    EngineInfo, Error, Event, EventId, EventPurge, EventQuery, EventSpan, Lease, Message, MessageId, NewStack,
    Refactor, Resource, Retention, Room, Silent, Snapshot, SnapshotId, Stack, StackId, StackQuery, StackRequest, Store,
    Summary, UnusedCredentials, UnusedUserProject,
};

/// The clock that stands for the database's clock.
pub type DatabaseClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The store in memory. Clones share the same data.
#[derive(Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    clock: DatabaseClock,
    hub: Arc<Hub>,
    /// How long a commit takes.
    commit_time: Duration,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty store with this database clock.
    pub fn new(clock: DatabaseClock) -> Self {
        Self { state: Arc::default(), clock, hub: Hub::new(Reach::Alone), commit_time: Duration::ZERO }
    }

    /// The same store, in which each commit and each claim takes this long.
    #[must_use]
    pub fn with_commits_of(self, commit_time: Duration) -> Self {
        Self { commit_time, ..self }
    }

    /// The same store; events of stacks are announced on a message bus from now on.
    #[must_use]
    pub fn with_notifications(self) -> Self {
        self.open().0.notifications = true;
        self
    }

    /// What was read so far.
    pub fn rows_read(&self) -> RowsRead {
        self.open().0.rows_read.get()
    }

    /// How often leases were released.
    pub fn releases(&self) -> usize {
        self.open().0.releases
    }

    /// How often the store was asked or changed.
    pub fn calls(&self) -> usize {
        let (mut state, _) = self.open();
        // This is none.
        state.calls -= 1;
        state.calls
    }

    async fn commit_time(&self) {
        if !self.commit_time.is_zero() {
            tokio::time::sleep(self.commit_time).await;
        }
    }

    /// The state and the database's time in microseconds.
    fn open(&self) -> (MutexGuard<'_, State>, i64) {
        let now = (self.clock)().as_microsecond();
        // If another thread panics during a write, its own test fails.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.calls += 1;
        (state, now)
    }

    fn tell_couriers(&self) {
        if !self.open().0.outbox.is_empty() {
            self.hub.posted();
        }
    }

    fn ring_all(&self, stacks: impl IntoIterator<Item = StackId>) {
        for stack in stacks {
            self.hub.ring(stack);
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn migrate(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn create_stack(&self, stack: NewStack) -> Result<Stack, Error> {
        let (mut state, now) = self.open();
        if let Some(made) = state.stacks.get(&stack.id).filter(|_| stack.planned.is_none()) {
            return Ok(made.stack.clone());
        }
        state.check_new(&stack, now)?;
        let made = state.create(&stack, now);
        drop(state);
        self.hub.ring(made.id);
        self.hub.tell(Some(made.root));
        self.tell_couriers();
        Ok(made)
    }

    async fn request(&self, stack: StackId, request: StackRequest) -> Result<Stack, Error> {
        let (mut state, now) = self.open();
        let not_found = || Error::NotFound(format!("stack {stack}"));
        let generation = state.live(stack).ok_or_else(not_found)?.generation;
        state.check_request(stack, generation, &request, now)?;
        let (asked, event) = state.request(stack, &request, now).ok_or_else(not_found)?;
        state.post(stack, std::slice::from_ref(&event), now);
        state.append(event);
        drop(state);
        self.hub.ring(stack);
        self.hub.tell(Some(asked.root));
        self.tell_couriers();
        Ok(asked)
    }

    async fn refactor(&self, refactor: &Refactor) -> Result<Vec<Stack>, Error> {
        self.commit_time().await;
        let (mut state, now) = self.open();
        let stacks = state.refactor(refactor, now)?;
        drop(state);
        for stack in &stacks {
            self.hub.ring(stack.id);
            self.hub.tell(Some(stack.root));
        }
        self.tell_couriers();
        Ok(stacks)
    }

    async fn send(&self, message: &Message) -> Result<(), Error> {
        let (mut state, now) = self.open();
        if !state.send(message, now) {
            return Err(Error::NotFound(format!("stack {}", message.stack)));
        }
        drop(state);
        if message.is_due_at_once() {
            self.hub.ring(message.stack);
        }
        Ok(())
    }

    async fn stack(&self, id: StackId) -> Result<Option<Stack>, Error> {
        Ok(self.open().0.stacks.get(&id).map(|row| row.stack.clone()))
    }

    async fn stack_by_name(&self, project: &str, name: &str) -> Result<Option<Stack>, Error> {
        Ok(self.open().0.by_name(project, name).cloned())
    }

    async fn stacks(&self, query: &StackQuery) -> Result<Vec<Stack>, Error> {
        self.open().0.list_stacks(query)
    }

    async fn count_stacks(&self, query: &StackQuery) -> Result<u64, Error> {
        Ok(self.open().0.count_stacks(query))
    }

    async fn room(&self, project: &str, name: &str, counts: bool) -> Result<Room, Error> {
        let (state, _) = self.open();
        let live = StackQuery { project: Some(project.to_owned()), ..StackQuery::default() };
        Ok(Room {
            is_taken: state.by_name(project, name).is_some(),
            stacks: if counts { state.count_stacks(&live) } else { 0 },
            guards: state.guards_of(project),
        })
    }

    async fn desired(&self, desired: &Desired) -> Result<DesiredText, Error> {
        let (state, _) = self.open();
        Ok(DesiredText {
            template: state.content(&desired.template)?,
            environment: state.content(&desired.environment)?,
            files: state.content(&desired.files)?,
        })
    }

    async fn quotas(&self, project: &str) -> Result<Quotas, Error> {
        Ok(self.open().0.quotas.get(project).cloned().unwrap_or_default())
    }

    async fn add_durations(&self, more: &Durations) -> Result<(), Error> {
        let (mut state, _) = self.open();
        for (of, histogram) in more {
            let stored = state.durations.entry(of.clone()).or_default();
            stored.merge(histogram);
            stored.age();
        }
        Ok(())
    }

    async fn durations(&self, types: &BTreeSet<String>) -> Result<Durations, Error> {
        let (state, _) = self.open();
        let durations = state.durations.iter().filter(|((resource_type, _), _)| types.contains(resource_type));
        Ok(durations.map(|(of, histogram)| (of.clone(), histogram.clone())).collect())
    }

    async fn content(&self, digest: &Digest) -> Result<String, Error> {
        self.open().0.content(digest)
    }

    async fn resources(&self, stack: StackId) -> Result<Vec<Resource>, Error> {
        Ok(self.open().0.resources_of(&[stack]))
    }

    async fn resources_and_writes(&self, stack: StackId) -> Result<(Option<i64>, Vec<Resource>), Error> {
        let state = self.open().0;
        let rows = state.resources_of(&[stack]);
        let row = state.stacks.get(&stack).filter(|_| !rows.is_empty());
        Ok((row.map(|row| row.stack.writes), rows))
    }

    async fn resources_in_brief(
        &self,
        stack: StackId,
        after: Option<u64>,
        limit: u64,
    ) -> Result<BriefResources, Error> {
        Ok(self.open().0.resources_in_brief(stack, after, limit))
    }

    async fn resources_of(&self, stacks: &[StackId]) -> Result<Vec<Resource>, Error> {
        Ok(self.open().0.resources_of(stacks))
    }

    async fn resources_named(&self, stack: StackId, name: &str) -> Result<Vec<Resource>, Error> {
        Ok(self.open().0.resources_named(stack, name))
    }

    async fn count_resources(&self, root: StackId) -> Result<u64, Error> {
        Ok(self.open().0.count_resources(root))
    }

    async fn children(&self, parent: StackId) -> Result<Vec<Summary>, Error> {
        Ok(self.open().0.children_of(parent))
    }

    async fn ended_children(&self, parent: StackId, also: &[StackId]) -> Result<Vec<Summary>, Error> {
        Ok(self.open().0.ended_children(parent, also))
    }

    async fn snapshot(&self, stack: StackId, id: SnapshotId) -> Result<Option<Snapshot>, Error> {
        Ok(self.open().0.snapshots.get(&id).filter(|snapshot| snapshot.stack == stack).cloned())
    }

    async fn snapshots(&self, stack: StackId) -> Result<Vec<Snapshot>, Error> {
        let (state, _) = self.open();
        let listed = state.snapshots.values().filter(|snapshot| snapshot.stack == stack && snapshot.is_listed());
        let mut snapshots: Vec<Snapshot> = listed.cloned().collect();
        snapshots.sort_by_key(|snapshot| (snapshot.created, snapshot.id));
        Ok(snapshots)
    }

    async fn events(&self, query: &EventQuery) -> Result<Vec<Event>, Error> {
        self.open().0.list_events(query)
    }

    async fn numbered_events(&self, span: &EventSpan, query: &EventQuery) -> Result<Vec<(u64, Event)>, Error> {
        Ok(self.open().0.numbered_events(span, query))
    }

    async fn last_events(&self, query: &EventQuery, up_to: u64) -> Result<Vec<(StackId, u64)>, Error> {
        Ok(self.open().0.last_events(query, up_to))
    }

    async fn event_number(&self, id: EventId) -> Result<u64, Error> {
        self.open().0.event_number(id)
    }

    async fn event(&self, stack: StackId, id: EventId) -> Result<Option<Event>, Error> {
        Ok(self.open().0.event(id).filter(|event| event.stack == stack).cloned())
    }

    async fn claim_each(
        &self,
        owner: EngineId,
        ttl: Duration,
        claimable: Claimable<'_>,
        limit: usize,
        won: &mut (dyn FnMut(Lease) + Send),
    ) -> Result<(), Error> {
        let (mut left, candidates) = {
            let (state, now) = self.open();
            (limit.min(CLAIMS), state.candidates(claimable, now))
        };
        for stack in candidates {
            if left == 0 {
                break;
            }
            let lease = {
                let (mut state, now) = self.open();
                state.claim(stack, owner, ttl, claimable, now)
            };
            if let Some(lease) = lease {
                self.commit_time().await;
                won(lease);
                left -= 1;
            }
        }
        Ok(())
    }

    async fn renew(&self, owner: EngineId, ttl: Duration, leases: &[Lease]) -> Result<Vec<Lease>, Error> {
        let (mut state, now) = self.open();
        Ok(leases.iter().filter(|lease| lease.owner == owner && state.extend(**lease, ttl, now)).copied().collect())
    }

    async fn release(&self, leases: &[Lease]) -> Result<(), Error> {
        let (mut state, now) = self.open();
        state.releases += 1;
        let due = state.give_back(leases, now);
        drop(state);
        self.ring_all(due);
        Ok(())
    }

    async fn commit(&self, lease: Lease, batch: Batch) -> Result<Stack, Error> {
        self.commit_time().await;
        let (mut state, now) = self.open();
        state.check_batch(lease, &batch, now)?;
        let rings = batch.rings();
        let settled = batch.settle.is_some();
        let has_news = batch.has_events();
        let stack = state.commit(lease, batch, now)?;
        drop(state);
        if has_news {
            self.hub.tell(Some(stack.root));
        }
        self.tell_couriers();
        self.ring_all(rings);
        if settled {
            self.ring_all([stack.id].into_iter().chain(stack.parent.as_ref().map(|parent| parent.stack)));
        }
        Ok(stack)
    }

    async fn due_messages(&self, stack: StackId, now: Timestamp) -> Result<Vec<MessageId>, Error> {
        let (state, database) = self.open();
        Ok(state.due_messages(stack, now.as_microsecond().max(database)))
    }

    async fn messages(&self, stack: StackId, ids: &[MessageId]) -> Result<Vec<Message>, Error> {
        Ok(self.open().0.read_messages(stack, ids))
    }

    async fn backlog(&self, stack: StackId, sizes: bool) -> Result<Backlog, Error> {
        Ok(self.open().0.backlog(stack, sizes))
    }

    async fn plan_credentials(&self, plan: &Secret<String>) -> Result<CredentialsId, Error> {
        let (mut state, now) = self.open();
        Ok(state.plan_credentials(plan, now))
    }

    async fn keep_credentials(&self, id: CredentialsId, credentials: &Secret<String>) -> Result<(), Error> {
        let (mut state, now) = self.open();
        state.keep_credentials(id, credentials, now)
    }

    async fn credentials(&self, id: CredentialsId) -> Result<Secret<String>, Error> {
        self.open().0.known_credentials(id)
    }

    async fn retire_credentials(&self, unused: &UnusedCredentials) -> Result<bool, Error> {
        Ok(self.open().0.retire_credentials(unused))
    }

    async fn delete_credentials(&self, id: CredentialsId) -> Result<(), Error> {
        self.open().0.credentials.remove(&id);
        Ok(())
    }

    async fn unused_user_projects(&self, limit: usize) -> Result<Vec<UnusedUserProject>, Error> {
        Ok(self.open().0.unused_user_projects(limit))
    }

    async fn forget_user_project(&self, stack: StackId) -> Result<(), Error> {
        self.open().0.forget_user_project(stack);
        Ok(())
    }

    async fn unused_credentials(&self, older_than: Duration, limit: usize) -> Result<Vec<UnusedCredentials>, Error> {
        let (state, now) = self.open();
        Ok(state.unused_credentials(older_than, limit, now))
    }

    async fn report(&self, engine: &EngineInfo) -> Result<(), Error> {
        let (mut state, now) = self.open();
        state.report(engine, now);
        Ok(())
    }

    async fn now(&self) -> Result<Timestamp, Error> {
        Ok((self.clock)())
    }

    async fn engines(&self) -> Result<Vec<EngineInfo>, Error> {
        Ok(self.open().0.engines())
    }

    async fn forget_engine(&self, silent: &Silent) -> Result<(), Error> {
        self.open().0.forget_engine(silent);
        Ok(())
    }

    async fn forget(&self, retention: &Retention) -> Result<u64, Error> {
        let (mut state, now) = self.open();
        Ok(state.forget(retention, now))
    }

    async fn forget_events(&self, keep: u64, after: u64) -> Result<EventPurge, Error> {
        Ok(self.open().0.forget_events(keep, after))
    }

    async fn census(&self) -> Result<Census, Error> {
        let (state, now) = self.open();
        Ok(state.census(now))
    }

    fn doorbell(&self) -> Arc<dyn Doorbell> {
        self.hub.bell()
    }

    fn news(&self) -> Arc<dyn Doorbell> {
        self.hub.news()
    }
}
