//! The records of the checks, and the checks of every write.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use kiln_resource::{Action, CredentialsId, GuardId, MessageId, PlanId, Resource, ResourceId, State, Status};
use kiln_store::{Batch, Desired, Event, EventQuery, Lease, Message, NewStack, OperationId, Stack, StackId};
use kiln_value::Value;

use crate::cloud::{CloudCall, Object};
use crate::continued;
use crate::drivers::CANNOT_TELL;
use crate::inbox;
use crate::plans::{self, KnownPlan};
use crate::rule::Rule;
use crate::sabotage::Sabotage;
use crate::simulation::{Label, Simulation};
use crate::states;
use crate::takeovers::TakeOvers;
use crate::template_model::{Plain, TemplateModel};
use crate::waits::{self, Waits};
use crate::wanted;
use crate::{guards, moves};

/// Maximum number of commits of one stack within [`COMMIT_WINDOW_MS`].
const MOST_COMMITS: usize = 200;
/// The window in which they are counted.
const COMMIT_WINDOW_MS: u64 = 20_000;

/// Maximum number of reads of a stack's row by engines within [`READ_WINDOW_MS`] without news.
const MOST_READS: usize = 50;
/// The window in which they are counted.
const READ_WINDOW_MS: u64 = 60_000;

/// Maximum number of reads of all resources of a stack by engines within [`LOAD_WINDOW_MS`].
const MOST_LOADS: usize = 60;
/// The window in which they are counted.
const LOAD_WINDOW_MS: u64 = 20_000;

/// The records of the checks.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The last claim of each stack.
    claims: BTreeMap<StackId, (Label, Lease)>,
    ever_claimed: BTreeMap<Label, Vec<Lease>>,
    /// The root of each stack.
    roots: BTreeMap<StackId, StackId>,
    /// The objects of abandoned stacks.
    abandoned: BTreeMap<StackId, Vec<String>>,
    /// Abandoned stacks whose resources another stack has adopted.
    adopted: BTreeSet<StackId>,
    /// Stacks that adopted objects which did not have the properties of their template.
    deviating: BTreeSet<StackId>,
    /// The parent stack of each nested stack.
    parents: BTreeMap<StackId, StackId>,
    stacks: BTreeMap<StackId, StackRecord>,
    /// The operations that are rollbacks.
    rollbacks: BTreeSet<OperationId>,
    /// The objects whose delete a rollback has begun.
    taken_back: BTreeSet<String>,
    /// The models of templates.
    wishes: BTreeMap<(String, String), Arc<TemplateModel>>,
    queries: BTreeMap<&'static str, u64>,
    messages: Vec<Message>,
    /// How often messages were sent to each stack, with those that were sent again.
    sends: BTreeMap<StackId, usize>,
    /// When each message was sent, and when it was stored.
    stored: BTreeMap<MessageId, (Timestamp, Timestamp)>,
    lost: Vec<MessageId>,
    /// The row that received each message, by stack and body.
    received: BTreeMap<(StackId, String), ResourceId>,
    /// The marks of planned trusts.
    marks: BTreeMap<CredentialsId, String>,
    /// The credentials that were stored last.
    shared: Option<CredentialsId>,
    /// The time when the create of each row began.
    born: BTreeMap<ResourceId, Timestamp>,
    /// The request during or after which a user marked each row unhealthy.
    marked: BTreeMap<ResourceId, i64>,
    /// The saved plans.
    plans: BTreeMap<PlanId, Arc<KnownPlan>>,
    /// The objects that each guard protects.
    guarded: BTreeMap<GuardId, BTreeSet<String>>,
    /// The number of the last request to each stack that was an operation of its own.
    own: BTreeMap<StackId, i64>,
    waits: Waits,
    take_overs: TakeOvers,
    /// Recent reads of all resources of each stack.
    loads: BTreeMap<StackId, VecDeque<u64>>,
}

/// The last known state of a stack.
#[derive(Clone, Debug)]
pub(crate) struct StackRecord {
    /// The stack.
    pub stack: Stack,
    /// Start of its action in milliseconds.
    pub since_ms: u64,
    commits: VecDeque<u64>,
    /// Recent reads of the stack's row by engines without news.
    idle_reads: VecDeque<u64>,
    /// Changes of the stack and its nested stacks.
    changes: u64,
    /// Number of changes at the last read.
    read_at: Option<u64>,
    /// The target of a rollback: the last reached state, or the state before the first update.
    target: Option<Desired>,
    /// The generation that an engine has seen.
    known: i64,
    /// Whether its first request was seen; the response to it may have been lost.
    from_start: bool,
}

impl StackRecord {
    /// Whether an engine has written anything since the start of the action.
    pub(crate) fn was_written(&self) -> bool {
        self.commits.back().is_some_and(|at| *at >= self.since_ms)
    }
}

impl Ledger {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the model of a template.
    pub(crate) fn learn(&self, desired: &Desired, template: Arc<TemplateModel>) {
        self.inner().wishes.insert(key_of(desired), template);
    }

    /// The model of a stack's template.
    pub(crate) fn meaning(&self, desired: &Desired) -> Option<Arc<TemplateModel>> {
        self.inner().wishes.get(&key_of(desired)).cloned()
    }

    /// The last known states of all stacks.
    pub(crate) fn stacks(&self) -> Vec<StackRecord> {
        self.inner().stacks.values().cloned().collect()
    }

    /// A user abandons a stack with these objects.
    pub(crate) fn abandon(&self, stack: StackId, objects: Vec<String>) {
        self.inner().abandoned.insert(stack, objects);
    }

    /// A stack is not abandoned after all.
    pub(crate) fn keep(&self, stack: StackId) {
        self.inner().abandoned.remove(&stack);
    }

    /// The objects of an abandoned stack.
    pub(crate) fn abandoned(&self, stack: StackId) -> Option<Vec<String>> {
        self.inner().abandoned.get(&stack).cloned()
    }

    /// A user creates a stack from the resources of an abandoned one.
    pub(crate) fn adopt(&self, stack: StackId) {
        self.inner().adopted.insert(stack);
    }

    /// Whether another stack has adopted the resources of an abandoned one.
    pub(crate) fn was_adopted(&self, stack: StackId) -> bool {
        self.inner().adopted.contains(&stack)
    }

    /// The objects that a stack adopts do not have the properties of their template: the former stack had failed.
    pub(crate) fn deviate(&self, stack: StackId) {
        self.inner().deviating.insert(stack);
    }

    /// Whether a stack adopted objects that did not have the properties of their template.
    pub(crate) fn deviates(&self, stack: StackId) -> bool {
        self.inner().deviating.contains(&stack)
    }

    /// The root of a stack.
    pub(crate) fn root_of(&self, stack: StackId) -> StackId {
        self.inner().roots.get(&stack).copied().unwrap_or(stack)
    }

    /// Counts a query.
    pub(crate) fn count_query(&self, name: &'static str) {
        *self.inner().queries.entry(name).or_default() += 1;
    }

    /// Returns and resets the number of queries.
    pub(crate) fn take_queries(&self) -> BTreeMap<&'static str, u64> {
        std::mem::take(&mut self.inner().queries)
    }

    /// Records that a row has a message; returns the row that received it first.
    pub(crate) fn received(&self, stack: StackId, body: &Value, row: ResourceId) -> ResourceId {
        *self.inner().received.entry((stack, format!("{body:?}"))).or_insert(row)
    }

    /// Whether any row has received a message.
    pub(crate) fn was_received(&self, message: &Message) -> bool {
        self.inner().received.contains_key(&(message.stack, format!("{:?}", message.body.details())))
    }

    /// Messages that a defect removes from the inbox without handling them.
    pub(crate) fn lose(&self, messages: impl Iterator<Item = Message>) {
        self.inner().lost.extend(messages.map(|message| message.id));
    }

    /// The messages to remove without handling them.
    pub(crate) fn take_lost(&self) -> Vec<MessageId> {
        std::mem::take(&mut self.inner().lost)
    }

    /// When a message was sent, and when it was stored, whatever the clock of the database said.
    pub(crate) fn stored(&self, message: &Message) -> Option<(Timestamp, Timestamp)> {
        self.inner().stored.get(&message.id).copied()
    }

    /// The sent messages.
    pub(crate) fn messages(&self) -> Vec<Message> {
        self.inner().messages.clone()
    }

    /// A trust will be created.
    pub(crate) fn planned(&self, id: CredentialsId, mark: &str) {
        self.inner().marks.insert(id, mark.to_owned());
    }

    /// The next stacks may share the credentials.
    pub(crate) fn share(&self, id: CredentialsId) {
        self.inner().shared = Some(id);
    }

    /// The credentials that a new stack may share.
    pub(crate) fn shared(&self) -> Option<CredentialsId> {
        self.inner().shared
    }

    /// The mark of a trust.
    pub(crate) fn mark_of(&self, id: CredentialsId) -> Option<String> {
        self.inner().marks.get(&id).cloned()
    }

    /// The time when the create of a row began.
    pub(crate) fn born(&self, row: ResourceId) -> Option<Timestamp> {
        self.inner().born.get(&row).copied()
    }

    /// A stack was created.
    pub(crate) fn created(&self, sim: &Simulation, label: Label, stack: &NewStack) {
        let (id, root) = (stack.id, if stack.parent.is_some() { stack.root } else { stack.id });
        sim.trace.note(&label.to_string(), || format!("stack {} ({id}) made", stack.name));
        let mut inner = self.inner();
        inner.roots.insert(id, root);
        if let Some(parent) = &stack.parent {
            inner.parents.insert(id, parent.stack);
        }
    }

    /// A request to a stack was written.
    pub(crate) fn asked(&self, sim: &Simulation, label: Label, stack: &Stack) {
        sim.trace.note(&label.to_string(), || format!("{} asked: {} #{}", stack.name, stack.state, stack.generation));
        self.see(sim, stack, true);
    }

    /// A message was sent.
    pub(crate) fn sent(&self, sim: &Simulation, message: &Message) {
        sim.trace.note("api", || {
            format!("{} sent to {:?}: {:?}", message.body.kind(), message.resource, message.body.details())
        });
        let mut inner = self.inner();
        *inner.sends.entry(message.stack).or_default() += 1;
        if !inner.messages.iter().any(|other| other.id == message.id) {
            inner.messages.push(message.clone());
            let (now, ahead) = (sim.time.now(), sim.store_clock.now().duration_since(sim.time.now()));
            inner.stored.insert(message.id, (message.sent - ahead, now));
            // Its ring is a reason to read the stack.
            if let Some(record) = inner.stacks.get_mut(&message.stack) {
                record.changes += 1;
            }
        }
    }

    /// A stack was claimed.
    pub(crate) fn claimed(&self, sim: &Simulation, label: Label, lease: Lease) {
        sim.trace.note(&label.to_string(), || format!("claimed {} epoch {}", lease.stack, lease.epoch));
        let mut inner = self.inner();
        inner.claims.insert(lease.stack, (label, lease));
        inner.take_overs.claimed(lease, label, sim.time.ms());
        inner.ever_claimed.entry(label).or_default().push(lease);
        // The row of the root is read for the work on a nested stack, and once more for its result.
        let root = std::iter::successors(Some(lease.stack), |stack| inner.parents.get(stack).copied()).last();
        if let Some(record) = root.and_then(|root| inner.stacks.get_mut(&root)) {
            record.idle_reads.drain(..record.idle_reads.len().min(2));
        }
    }

    /// Leases were released.
    pub(crate) fn released(&self, leases: &[Lease]) {
        self.inner().take_overs.released(leases);
    }

    /// An engine was killed.
    pub(crate) fn killed(&self, label: Label, now: u64) {
        self.inner().take_overs.killed(label, now);
    }

    /// An engine was stopped.
    pub(crate) fn stopped(&self) {
        self.inner().take_overs.stopped();
    }

    /// The number of processes that were killed or stopped.
    pub(crate) fn count_ended(&self) -> u64 {
        self.inner().take_overs.count_ended()
    }

    /// The stacks in progress that a killed engine holds, and since when.
    pub(crate) fn left_behind_by_killed(&self) -> Vec<(Stack, Label, u64)> {
        let inner = self.inner();
        let pending = |stack: StackId| inner.stacks.get(&stack).filter(|record| record.stack.is_pending());
        let left = inner.take_overs.left().filter_map(|(stack, label, since)| {
            let record = pending(stack)?;
            Some((record.stack.clone(), label, since.max(record.since_ms)))
        });
        left.collect()
    }

    /// All leases that an engine ever claimed.
    pub(crate) fn ever_claimed(&self, label: Label) -> Vec<Lease> {
        self.inner().ever_claimed.get(&label).cloned().unwrap_or_default()
    }

    /// The current lease of the same stack.
    pub(crate) fn current(&self, lease: Lease) -> Lease {
        self.inner().claims.get(&lease.stack).map_or(lease, |(_, current)| *current)
    }

    /// An engine sends a write to the cloud: it must own the stack.
    pub(crate) fn call_sent(&self, sim: &Simulation, label: Label, call: &CloudCall) {
        let Ok(stack) = call.stack.parse::<StackId>() else { return };
        let owner = self.inner().claims.get(&stack).map(|(owner, _)| *owner);
        if owner.is_some_and(|owner| owner != label) {
            let by = owner.map(|owner| owner.to_string()).unwrap_or_default();
            sim.accuse(
                Rule::UnfencedCall,
                format!("{:?} for {} by {label}, claimed by {by}", call.method, call.resource),
            );
        }
        let inner = self.inner();
        let Some(stack) = inner.stacks.get(&stack).map(|record| record.stack.clone()) else { return };
        let plan = stack.details.planned.as_ref().filter(|_| stack.is_pending());
        let plan = plan.and_then(|planned| inner.plans.get(&planned.plan)).map(Arc::clone);
        let own = inner.own.get(&stack.id).copied().unwrap_or_default();
        drop(inner);
        guards::check(sim, &stack, call);
        continued::check(sim, &stack, call);
        if let Some(plan) = plan {
            plans::check(sim, &stack, own, &plan, call);
        }
    }

    /// A stack as it was seen last.
    pub(crate) fn stack(&self, id: StackId) -> Option<Stack> {
        self.inner().stacks.get(&id).map(|record| record.stack.clone())
    }

    /// Whether an operation is a rollback. Its requests to nested stacks may be done later than a newer request to the root.
    pub(crate) fn is_rollback(&self, operation: OperationId) -> bool {
        self.inner().rollbacks.contains(&operation)
    }

    /// Whether a stack is being rolled back, or a nested one because of that.
    pub(crate) fn rolls_back(&self, stack: &Stack) -> bool {
        let root = self.stack(stack.root);
        root.is_some_and(|root| root.state.action == Action::Rollback) || self.is_rollback(stack.operation())
    }

    /// A rollback deletes an object.
    pub(crate) fn take_back(&self, id: &str) {
        self.inner().taken_back.insert(id.to_owned());
    }

    /// Whether a rollback has begun to delete an object.
    pub(crate) fn is_taken_back(&self, id: &str) -> bool {
        self.inner().taken_back.contains(id)
    }

    /// A guard is stored that protects these objects.
    pub(crate) fn guard(&self, id: GuardId, objects: BTreeSet<String>) {
        self.inner().guarded.insert(id, objects);
    }

    /// A guard is lifted.
    pub(crate) fn lift(&self, id: GuardId) {
        self.inner().guarded.remove(&id);
    }

    /// Whether a guard protects an object.
    pub(crate) fn is_guarded(&self, object: &str) -> bool {
        self.inner().guarded.values().any(|objects| objects.contains(object))
    }

    /// A user saves a plan.
    pub(crate) fn plan(&self, id: PlanId, plan: KnownPlan) {
        self.inner().plans.insert(id, Arc::new(plan));
    }

    /// Whether engines can know an object: objects without a mark are unknown to them after a lost create.
    pub(crate) async fn stands_for(&self, sim: &Simulation, object: &Object) -> bool {
        let Ok(stack) = object.stack.parse::<StackId>() else { return false };
        let rows = sim.store.resources(stack).await.unwrap_or_default();
        let row = rows.iter().find(|row| row.id.to_string() == object.row);
        row.is_some_and(|row| object.kind != Plain::Blind || row.physical_id.as_ref() == Some(&object.id))
    }

    /// Whether an object of a stack may be deleted although one of another stack depends on it. An update of a nested
    /// stack deletes replaced objects before the resources of its parent are updated, as in Heat. The order is known
    /// only if every stack between the stack of the object and the common ancestor is being deleted.
    pub(crate) fn may_leave(&self, stack: &str, dependant: &str) -> bool {
        let (Ok(stack), Ok(dependant)) = (stack.parse::<StackId>(), dependant.parse::<StackId>()) else { return false };
        let inner = self.inner();
        let around = |stack: StackId| std::iter::successors(Some(stack), |stack| inner.parents.get(stack).copied());
        let deleted =
            |stack: &StackId| inner.stacks.get(stack).is_some_and(|record| record.stack.state.action == Action::Delete);
        let of_dependant: Vec<StackId> = around(dependant).collect();
        around(stack).take_while(|stack| !of_dependant.contains(stack)).any(|stack| !deleted(&stack))
    }

    /// The rows before a commit.
    pub(crate) async fn before_commit(&self, sim: &Simulation, stack: StackId) -> BTreeMap<ResourceId, Resource> {
        let rows = sim.store.resources(stack).await.unwrap_or_default();
        rows.into_iter().map(|row| (row.id, row)).collect()
    }

    /// Whether a user marked a row unhealthy since the start of the last request: it need not be replaced yet.
    pub(crate) fn is_marked(&self, row: ResourceId, stack: StackId) -> bool {
        let inner = self.inner();
        let request = inner.stacks.get(&stack).map(|record| record.stack.generation);
        request.is_some() && inner.marked.get(&row).copied() == request
    }

    /// A commit was accepted.
    pub(crate) async fn committed(
        &self,
        sim: &Arc<Simulation>,
        label: Label,
        lease: Lease,
        batch: &Batch,
        before: &BTreeMap<ResourceId, Resource>,
        stack: &Stack,
    ) {
        trace_commit(sim, label, batch, stack);
        let current = self.current(lease);
        if current.epoch != lease.epoch {
            let text = format!("{label} wrote under epoch {}, the last is {}", lease.epoch, current.epoch);
            sim.accuse(Rule::OldEpoch, text);
        }
        for child in &batch.children {
            self.created(sim, label, child);
            if let Ok(Some(child)) = sim.store.stack(child.id).await {
                self.see(sim, &child, true);
            }
        }
        for (child, _) in &batch.requests {
            if let Ok(Some(child)) = sim.store.stack(*child).await {
                self.asked(sim, label, &child);
            }
        }
        let waits_before = |row: &&Resource| before.get(&row.id).is_none_or(|old| old.state == State::INIT);
        // Messages to a resource that is never created are dropped.
        for row in batch.save.iter().filter(|row| row.state != State::INIT).filter(waits_before) {
            self.inner().born.entry(row.id).or_insert_with(|| sim.time.now());
        }
        check_rows(sim, batch, before);
        moves::check(sim, stack, batch, before).await;
        let failed = State::new(Action::Check, Status::Failed);
        for row in batch.save.iter().filter(|row| row.state == failed && stack.state.action != Action::Check) {
            if before.get(&row.id).is_none_or(|before| before.state != failed) {
                self.inner().marked.insert(row.id, stack.generation);
            }
        }
        batch.save.iter().for_each(|row| inbox::note(sim, row));
        if self.rolls_back(stack) {
            // The call may come after the next request.
            let begun = State::new(Action::Delete, Status::InProgress);
            let deleted =
                batch.save.iter().filter(|row| row.state == begun).filter_map(|row| row.physical_id.as_deref());
            deleted.for_each(|id| self.take_back(id));
        }
        let late = self.inner().waits.committed(sim, batch, before);
        waits::accuse(sim, late);
        // The store drops the rollback of a request that a newer one has replaced.
        let follows = batch.rollback.as_ref().is_some_and(|back| back.if_generation == Some(stack.generation));
        if follows && stack.disable_rollback {
            sim.accuse(Rule::BadTransition, format!("stack {} rolls back", stack.name));
        }
        self.see(sim, stack, false);
        self.count_commit(sim, stack);
        let settled = batch
            .settle
            .as_ref()
            .filter(|settle| stack.settled == settle.generation && stack.generation == settle.generation);
        if settled.is_some() {
            wanted::check_settled(sim, stack).await;
        }
    }

    /// An engine reads the row of a stack.
    pub(crate) fn count_read(&self, sim: &Simulation, label: Label, stack: StackId) {
        let now = sim.time.ms();
        let mut inner = self.inner();
        let sends = inner.sends.get(&stack).copied().unwrap_or_default();
        let Some(record) = inner.stacks.get_mut(&stack).filter(|_| label.slot.is_some()) else { return };
        if record.read_at.replace(record.changes) != Some(record.changes) {
            return;
        }
        while record.idle_reads.front().is_some_and(|at| at + READ_WINDOW_MS <= now) {
            record.idle_reads.pop_front();
        }
        record.idle_reads.push_back(now);
        let count = record.idle_reads.len();
        // A courier reads the row once for each request to a sink.
        let most = if sim.scenario.sink { 2 * MOST_READS } else { MOST_READS };
        // So does an actor for each ring of a message, which may be doubled.
        let most = most + 2 * sends;
        if count > most {
            let text = format!("{count} reads of {} in {READ_WINDOW_MS} ms for nothing", record.stack.name);
            drop(inner);
            sim.accuse(Rule::UnpacedReads, text);
        }
    }

    /// Counts a read of all resources of a stack by an engine.
    pub(crate) fn count_load(&self, sim: &Simulation, label: Label, stack: StackId) {
        if label.slot.is_none() {
            return;
        }
        let now = sim.time.ms();
        let mut inner = self.inner();
        let loads = inner.loads.entry(stack).or_default();
        loads.push_back(now);
        while loads.front().is_some_and(|at| at + LOAD_WINDOW_MS < now) {
            loads.pop_front();
        }
        let count = loads.len();
        drop(inner);
        if count > MOST_LOADS {
            let text = format!("all resources of {stack} were read {count} times within {LOAD_WINDOW_MS} ms");
            sim.accuse(Rule::UnpacedLoads, text);
        }
    }

    fn count_commit(&self, sim: &Simulation, stack: &Stack) {
        let now = sim.time.ms();
        let mut inner = self.inner();
        let Some(record) = inner.stacks.get_mut(&stack.id) else { return };
        while record.commits.front().is_some_and(|at| at + COMMIT_WINDOW_MS <= now) {
            record.commits.pop_front();
        }
        record.commits.push_back(now);
        if record.commits.len() > MOST_COMMITS {
            let text = format!("{} commits on {} in {COMMIT_WINDOW_MS} ms", record.commits.len(), stack.name);
            drop(inner);
            sim.accuse(Rule::UnpacedCommits, text);
        }
    }

    /// Records the state of a stack, which a request or an engine may have changed.
    pub(crate) fn see(&self, sim: &Simulation, stack: &Stack, asked: bool) {
        let mut inner = self.inner();
        let now = sim.time.ms();
        if stack.details.operation.is_none() {
            inner.own.insert(stack.id, stack.generation);
        }
        if stack.state.action == Action::Rollback {
            inner.rollbacks.insert(stack.operation());
        }
        let rollback = !stack.disable_rollback;
        let record = inner.stacks.entry(stack.id).or_insert_with(|| StackRecord {
            stack: stack.clone(),
            since_ms: now,
            commits: VecDeque::new(),
            idle_reads: VecDeque::new(),
            changes: 0,
            read_at: None,
            target: None,
            known: stack.generation,
            from_start: stack.generation == 1,
        });
        let (old, newer) = (record.stack.state, stack.generation > record.stack.generation);
        let fine = asked || newer || states::stack_may(old, stack.state, rollback);
        let begins = stack.state.status == Status::InProgress && (newer || old != stack.state);
        if begins {
            record.since_ms = now;
        }
        if newer && matches!(stack.state.action, Action::Update | Action::Restore) && record.target.is_none() {
            record.target = Some(record.stack.desired.clone());
        }
        let reached = [Action::Create, Action::Update, Action::Adopt, Action::Restore]
            .iter()
            .any(|action| stack.state.is_complete(*action));
        if reached && stack.details.skip.is_empty() && !newer && old != stack.state {
            record.target = Some(stack.desired.clone());
        }
        record.changes += 1;
        let target = record.target.clone().filter(|_| record.from_start);
        record.stack = stack.clone();
        if let Some(around) = &stack.parent
            && let Some(record) = inner.stacks.get_mut(&around.stack)
        {
            record.changes += 1;
        }
        drop(inner);
        if stack.state.is_complete(Action::Rollback) && target.as_ref().is_some_and(|target| *target != stack.desired) {
            sim.accuse(Rule::WrongTarget, format!("{} rolled back to another template than its last", stack.name));
        }
        if !fine {
            sim.accuse(Rule::BadTransition, format!("stack {} from {old} to {}", stack.name, stack.state));
        }
    }

    /// With the defect that hides newer requests from engines: the stack as it was when it was claimed.
    pub(crate) fn hide(&self, sim: &Simulation, label: Label, mut stack: Stack) -> Stack {
        if sim.has(Sabotage::ForgetPrevious) && label.slot.is_some() {
            stack.previous = None;
        }
        if sim.has(Sabotage::HideSkips) && label.slot.is_some() {
            stack.details.skip.clear();
        }
        if !sim.has(Sabotage::HideRequest) || label.slot.is_none() {
            return stack;
        }
        let mut inner = self.inner();
        if let Some(record) = inner.stacks.get_mut(&stack.id) {
            if stack.settled >= record.known {
                record.known = stack.generation;
            }
            stack.generation = record.known;
        }
        stack
    }

    /// Whether a live object without a resource is recorded: its create ended with an unknown outcome.
    pub(crate) async fn is_recorded_orphan(&self, sim: &Simulation, object: &Object) -> bool {
        let Ok(stack) = object.stack.parse::<StackId>() else { return false };
        if object.kind != Plain::Blind {
            return false;
        }
        // It may have another name by now.
        let events = sim.store.events(&EventQuery { stacks: vec![stack], ..EventQuery::default() }).await;
        let mut names = vec![object.resource.clone()];
        for event in events.as_deref().unwrap_or_default() {
            if event.reason.strip_prefix("moved from ").is_some_and(|from| names.iter().any(|name| name == from)) {
                names.push(event.resource_name.clone());
            }
        }
        let is_of_object = |event: &Event| names.contains(&event.resource_name);
        events.unwrap_or_default().iter().any(|event| is_of_object(event) && event.reason.contains(CANNOT_TELL))
    }
}

fn key_of(desired: &Desired) -> (String, String) {
    (desired.template.0.clone(), desired.files.0.clone())
}

fn trace_commit(sim: &Simulation, label: Label, batch: &Batch, stack: &Stack) {
    sim.trace.note(&label.to_string(), || {
        let mut parts: Vec<String> = batch
            .save
            .iter()
            .map(|row| {
                let id = row.physical_id.as_deref().unwrap_or("-");
                let short: String = row.id.to_string().chars().take(4).collect();
                format!("{}#{short} {} {id}", row.name, row.state)
            })
            .collect();
        parts.extend(batch.remove.iter().map(|id| format!("-{}", id.to_string().chars().take(4).collect::<String>())));
        parts.extend(batch.requests.iter().map(|(child, request)| format!("ask {child} {}", request.action)));
        parts.extend(
            batch
                .settle
                .as_ref()
                .map(|settle| format!("settle {} #{}: {}", settle.state, settle.generation, settle.reason)),
        );
        parts.extend(batch.rollback.as_ref().map(|_| "roll back".to_owned()));
        format!("commit {}: {}", stack.name, parts.join(", "))
    });
}

/// Whether a row that is deleted, or whose stack is, takes an object without a mark that a row of the same stack has left: that row
/// looked for an equal object and does not exist any more.
fn is_left_by_equal_row(
    sim: &Simulation,
    row: &Resource,
    object: &Object,
    before: &BTreeMap<ResourceId, Resource>,
) -> bool {
    let of_stack = sim.ledger.stack(row.stack).is_some_and(|stack| stack.state.action == Action::Delete);
    (of_stack || row.state.action == Action::Delete)
        && object.kind == Plain::Blind
        && object.stack == row.stack.to_string()
        && !before.keys().any(|id| id.to_string() == object.row)
}

/// State transitions must be those of the reference, and no row may take the object of another one.
fn check_rows(sim: &Simulation, batch: &Batch, before: &BTreeMap<ResourceId, Resource>) {
    for row in &batch.save {
        let from = before.get(&row.id).map_or(State::INIT, |old| old.state);
        // A split commit may contain the event of a change before the change itself.
        let whole = sim.scenario.batch >= 100;
        // Of rows that move, some events have the former name.
        let moves = batch.events.iter().any(|event| event.reason.starts_with("moved from "));
        let is_other = |other: &Resource| other.name == row.name && other.id != row.id;
        let alone = whole && !moves && !before.values().chain(&batch.save).any(is_other);
        let mut at = from;
        let of_row = |event: &&Event| event.resource_name == row.name && !event.is_of_stack();
        for event in batch.events.iter().filter(of_row) {
            let Ok(action) = event.action.parse::<Action>() else { continue };
            let to = State::new(action, event.status);
            // What is stopped before it has begun fails without an event that it begins.
            if alone && !plans::is_stop(event) && !states::resource_may(at, to) {
                sim.accuse(Rule::BadTransition, format!("{} from {at} to {to} by events", row.name));
            }
            at = to;
        }
        if !states::resource_may_reach(from, row.state) {
            sim.accuse(Rule::BadTransition, format!("{} from {from} to {}", row.name, row.state));
        }
        if let Some(id) = &row.physical_id
            && sim.cloud().get(id, sim.time.ms()).is_some_and(Object::is_foreign)
        {
            sim.accuse(Rule::Foreign, format!("{} took {id}", row.name));
        }
        if let Some(id) = &row.physical_id
            && let Some(object) = sim.cloud().get(id, sim.time.ms())
            && object.row != row.id.to_string()
            && !is_left_by_equal_row(sim, row, object, before)
            && object.stack.parse().is_ok_and(|stack| sim.ledger.abandoned(sim.ledger.root_of(stack)).is_none())
        {
            let text = format!("{} took {id}, which was made for row {} of {}", row.name, object.row, object.resource);
            sim.accuse(Rule::Shared, text);
        }
    }
}
