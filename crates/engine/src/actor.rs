//! Works on one stack under its lease: receives events, executes commands, and stores everything before acting on it.
//!
//! | file | content |
//! | --- | --- |
//! | `actor.rs` | the main loop: start a request, decide, store, call, wait |
//! | `actor/at_rest.rs` | whether the lease may be released |
//! | `actor/slots.rs` | running operations and timers |
//! | `actor/task.rs` | tasks: the only place that starts one |
//! | `actor/calls.rs` | calls of drivers |
//! | `actor/take_over.rs` | operations that another engine has begun |
//! | `actor/children.rs` | nested stacks |
//! | `actor/planned.rs` | the plan that a request keeps to |
//! | `actor/guarded.rs` | the guards that it heeds |
//! | `actor/inbox.rs` | messages |
//! | `actor/snapshots.rs` | snapshots of the stack |
//! | `actor/watches.rs` | operations that read other resources |
//! | `actor/scaling.rs` | changes of the size of groups |
//! | `actor/balancing.rs` | load balancers of groups |
//! | `actor/lifecycle.rs` | what lets a request begin: the pre-flight, lifecycle plug-ins |
//! | `actor/resizing.rs` | notifications about such changes |
//! | `actor/masking.rs` | hidden values in reasons and events |
//! | `actor/span.rs` | the span of an operation, for logs and traces |
//! | `actor/orphans.rs` | resources that are forgotten |
//! | `actor/write_queue.rs` | pending writes |
//! | `actor/storing.rs` | stores them |

pub(crate) mod at_rest;
mod balancing;
mod calls;
mod children;
mod events;
mod guarded;
mod inbox;
mod lifecycle;
mod masking;
mod orphans;
mod planned;
mod resizing;
mod scaling;
pub(crate) mod slots;
mod snapshots;
mod span;
mod storing;
pub(crate) mod take_over;
pub(crate) mod task;
mod watches;
mod write_queue;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use kiln_plan::hook::{Hooks, hooks_of};
use kiln_plan::{Allowed, Command, Decision, Event, Model, Request, StackScope};
use kiln_resource::{Action, Converging, Resource, ResourceId, State, Status};
use kiln_stack::gather::{Answer, Gatherer};
use kiln_stack::load::stack_facts;
use kiln_stack::sizes::Sizes;
use kiln_stack::{Backends, load};
use kiln_store::{Batch, Error, Lease, Settle, Stack, StackRequest};
use kiln_value::{Map, Value};
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tokio::task::JoinSet;
use tracing::Instrument as _;

use self::at_rest::{AtRest, End};
use self::calls::Reply;
use self::inbox::Inbox;
use self::lifecycle::Admission;
use self::masking::HiddenTexts;
use self::slots::Slots;
use self::snapshots::{Removing, Unfinished};
use self::span::OperationSpan;
use self::take_over::TakeOver;
use self::task::Task;
use self::watches::Watches;
use self::write_queue::WriteQueue;
use crate::breakdown;
use crate::fence::Fence;
use crate::lifecycle::Plugins;
use crate::options::Options;
use crate::planned_object::PlannedObjects;
use crate::preflight::Preflight;
use crate::room::Room;
use crate::unmarked::Creating;

/// The age from which a request is looked at twice, by the clock of the database.
const OLD: Duration = Duration::from_secs(15);

/// How an actor ended.
pub(crate) enum Exit {
    /// The work is done.
    Settled(Option<AtRest>),
    /// The engine stops.
    Drained(Option<AtRest>),
    /// Another engine owns the stack.
    Lost,
    /// The store failed.
    Broken(Error),
    /// The database permanently rejects the data.
    Refused(String),
    /// A panic.
    Panicked,
}

impl Exit {
    /// Its name in metrics.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Settled(_) => "settled",
            Self::Drained(_) => "drained",
            Self::Lost => "lost",
            Self::Broken(_) => "broken",
            Self::Refused(_) => "refused",
            Self::Panicked => "panicked",
        }
    }
}

impl From<Error> for Exit {
    fn from(error: Error) -> Self {
        match error {
            Error::Stale(_) => Self::Lost,
            Error::Invalid(why) => Self::Refused(why.to_string()),
            other => Self::Broken(other),
        }
    }
}

/// The work on one stack.
pub(crate) struct Actor {
    pub(crate) lease: Lease,
    /// What is known about calls of the previous engine.
    pub(crate) taken_over: TakeOver,
    pub(crate) fence: Fence,
    pub(crate) backends: Backends,
    pub(crate) options: Arc<Options>,
    /// Notified of news about the stack or its nested stacks.
    pub(crate) wake: Arc<Notify>,
    /// The creates without a mark that are in progress in this engine.
    pub(crate) creating: Arc<Creating>,
    pub(crate) room: Arc<Room>,
    pub(crate) plugins: Plugins,
    pub(crate) preflight: Option<Arc<dyn Preflight>>,
    /// True when the engine stops.
    pub(crate) drain: watch::Receiver<bool>,
}

impl Actor {
    pub(crate) async fn run(self) -> Exit {
        match self.work().await {
            Ok(exit) => exit,
            Err(error) => error.into(),
        }
    }

    async fn work(self) -> Result<Exit, Error> {
        let store = &self.backends.store;
        let starting = self.room.start().await;
        let stack = load::stack(&**store, self.lease.stack).await?;
        let _entered = self.room.enter(&stack.project);
        let pending = stack.is_pending();
        let mut rows = store.resources(stack.id).await?;
        if !pending {
            breakdown::end_left(&self.backends, self.lease, &mut rows, self.options.call_limit).await?;
        }
        let root = if stack.root == stack.id {
            Arc::new(stack.clone())
        } else {
            Arc::new(load::stack(&**store, stack.root).await?)
        };
        let path = if self.options.scheduler_hints { load::path(&**store, &stack).await? } else { Vec::new() };
        let mut work = Work {
            request: CurrentRequest { generation: stack.generation, active: pending, ..CurrentRequest::default() },
            stack,
            root,
            path,
            sizes: Sizes::default(),
            model: Model::new(rows),
            writes: WriteQueue::default(),
            removing: Removing::default(),
            unfinished: None,
            slots: Slots::default(),
            begun: BTreeMap::new(),
            watches: Watches::default(),
            tasks: JoinSet::new(),
            inbox: Inbox::default(),
            questions: VecDeque::new(),
            events: VecDeque::new(),
            results: 0,
            next_look: self.backends.clock.monotonic() + self.options.look,
            again: pending,
            starting,
            span: OperationSpan::default(),
            actor: self,
        };
        work.read_messages().await?;
        let (caches, project) = (Arc::clone(&work.actor.backends.caches), work.stack.project.clone());
        caches.threads.within(&project, work.run()).await
    }
}

/// The request in progress.
#[derive(Default)]
struct CurrentRequest {
    generation: i64,
    /// False when its end is being stored, and if there is none.
    active: bool,
    /// Its timeout, by the monotonic clock.
    deadline: Option<Duration>,
    /// The scope of template functions; `None` if the template is not needed.
    scope: Option<StackScope>,
    /// Rows that have changed since the scope has seen them.
    unseen: BTreeSet<ResourceId>,
    /// What events and reasons must not show.
    hidden: HiddenTexts,
    /// The resources to adopt, by name; empty unless the request adopts objects.
    adopted: Map,
    /// What its plan allows, if it keeps to one.
    allowed: Option<Arc<Allowed>>,
    /// [`Stack::guards`] when the guards were read that the request heeds.
    guards: i64,
    /// The objects that the plan has seen.
    planned_objects: PlannedObjects,
    /// The number of lifecycle plug-ins that are told about its end.
    plugins_passed: usize,
}

/// The state of the work.
struct Work {
    actor: Actor,
    request: CurrentRequest,
    stack: Stack,
    root: Arc<Stack>,
    /// Its path for hints of the scheduler; empty unless they are wanted.
    path: Vec<String>,
    /// The sizes of the definitions.
    sizes: Sizes,
    model: Model,
    /// Pending writes.
    writes: WriteQueue,
    /// The snapshots that are being deleted.
    removing: Removing,
    /// The snapshot that the running request has ended.
    unfinished: Option<Unfinished>,
    /// Running operations.
    slots: Slots,
    /// When the operations of rows began, by their events.
    begun: BTreeMap<ResourceId, Timestamp>,
    /// The rows that they read.
    watches: Watches,
    tasks: JoinSet<Reply>,
    inbox: Inbox,
    /// The resources that the planner asks about. They are prepared one after the other, each when nothing else is left
    /// to decide, so that the first results are stored while the others are prepared.
    questions: VecDeque<(u64, String, Option<ResourceId>)>,
    /// Pending events for the planner.
    events: VecDeque<Event>,
    /// About how many of them, the first ones, are results of operations that were called while deciding.
    results: usize,
    /// Time of the next read of the stack without a ring, because rings may be lost.
    next_look: Duration,
    /// A request has to be started.
    again: bool,
    /// Held during the first steps.
    starting: Option<OwnedSemaphorePermit>,
    /// The span of the request.
    span: OperationSpan,
}

impl Work {
    async fn run(&mut self) -> Result<Exit, Error> {
        loop {
            if self.again {
                self.span.begin(&self.stack);
            }
            let span = self.span.present();
            if let Some(exit) = self.round().instrument(span).await? {
                return Ok(exit);
            }
        }
    }

    /// One round: starts a request, decides, stores, calls and waits. The exit, if nothing is left to do.
    async fn round(&mut self) -> Result<Option<Exit>, Error> {
        if std::mem::take(&mut self.again) {
            self.take_marks();
            self.begin().await?;
            if self.again {
                return Ok(None);
            }
        }
        self.decide_all().await?;
        // Messages are processed in order: each sees the effects of the one before.
        let was_active = self.request.active;
        self.take_messages();
        self.decide_all().await?;
        self.flush().await?;
        self.come_due().await?;
        // The end of a request releases the messages that waited for it.
        if self.again || (was_active && !self.request.active) {
            return Ok(None);
        }
        if *self.actor.drain.borrow() {
            if self.is_stored() && !self.slots.any_calling() && !self.inbox.is_receiving() && self.removing.is_empty() {
                return Ok(Some(Exit::Drained(AtRest::at(End::Drained, self).await)));
            }
        } else {
            let is_idle = !self.request.active && self.inbox.is_empty() && self.removing.is_empty();
            if is_idle && self.is_stored() {
                return Ok(Some(Exit::Settled(AtRest::at(End::Settled, self).await)));
            }
            self.call_queued();
        }
        // A request to a nested stack is stored before its end is checked.
        if self.is_stored() && self.questions.is_empty() {
            self.wait().await?;
        }
        Ok(None)
    }

    /// Whether all that has come due is decided and stored.
    fn is_stored(&self) -> bool {
        self.events.is_empty() && self.writes.is_empty()
    }

    fn now(&self) -> Duration {
        self.actor.backends.clock.monotonic()
    }

    /// Waits for an event, and processes all pending ones.
    async fn wait(&mut self) -> Result<(), Error> {
        let clock = Arc::clone(&self.actor.backends.clock);
        let now = clock.monotonic();
        let next =
            [self.slots.next_timer(), self.request.deadline].into_iter().flatten().fold(self.next_look, Duration::min);
        let mut drain = self.actor.drain.clone();
        let draining = *drain.borrow_and_update();
        self.starting = None;
        let _waiting = self.tasks.is_empty().then(|| self.actor.room.leave());
        tokio::select! {
            biased;
            Some(reply) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                self.take(reply);
                while let Some(reply) = self.tasks.try_join_next() {
                    self.take(reply);
                }
            }
            () = self.actor.wake.notified() => self.look().await?,
            _ = drain.changed(), if !draining => {}
            // The next round finds what is due.
            () = clock.sleep(next.saturating_sub(now)) => {}
        }
        Ok(())
    }

    /// Timers, the time limit and news have their turn in each round: operations may end faster than their results are stored.
    async fn come_due(&mut self) -> Result<(), Error> {
        let now = self.now();
        self.slots.wake(now);
        if self.request.deadline.is_some_and(|deadline| now >= deadline) {
            self.request.deadline = None;
            self.slots.run_out_of_time();
            self.events.push_back(Event::TimedOut);
        }
        if now >= self.next_look {
            self.next_look = now + self.actor.options.look;
            self.look().await?;
            self.read_messages().await?;
        } else if self.actor.wake.notified().now_or_never().is_some() {
            self.look().await?;
        }
        Ok(())
    }

    /// Starts the current request.
    async fn begin(&mut self) -> Result<(), Error> {
        self.give_number_to_rollback().await?;
        let deadline = self.end_of_time().await;
        let generation = self.stack.generation;
        let mut request =
            CurrentRequest { generation, active: true, deadline: Some(deadline), ..CurrentRequest::default() };
        let mut barred = match self.admit(&mut request, deadline).await? {
            Admission::Given => None,
            Admission::Refused(reason) => Some(reason),
            Admission::Superseded => {
                self.again = true;
                return Ok(());
            }
            Admission::Postponed => return Ok(()),
        };
        self.request = request;
        match self.read_plan().await? {
            Ok(Some((allowed, objects))) => {
                self.request.allowed = Some(Arc::new(allowed));
                self.request.planned_objects = objects;
            }
            Ok(None) => {}
            Err(reason) => _ = barred.get_or_insert(reason),
        }
        self.questions.clear();
        let (backends, action) = (self.actor.backends.clone(), self.stack.state.action);
        let desired = match action {
            Action::Delete => None,
            Action::Rollback => self.stack.previous.clone(),
            _ => Some(self.stack.desired.clone()),
        };
        self.read_hidden().await?;
        if let Some(desired) = desired {
            match load::blueprint(&backends, &self.stack, &desired).await? {
                Ok(blueprint) => {
                    self.request.scope = Some(StackScope::new(Arc::new(blueprint), stack_facts(&self.stack)));
                }
                Err(error) => {
                    // It was valid when it was stored: the types or files must have changed since.
                    let reason = format!("{}: {error}", error.class);
                    barred.get_or_insert(reason);
                }
            }
        }
        if self.stack.adopts() {
            self.request.adopted = self.data_to_adopt().await?;
        }
        let has_targets = !matches!(action, Action::Check | Action::Suspend | Action::Resume | Action::Snapshot);
        let blueprint = self.request.scope.as_ref().filter(|_| has_targets).map(StackScope::blueprint);
        let targets =
            blueprint.map(|blueprint| blueprint.targets(|| ResourceId(backends.chance.uuid()))).unwrap_or_default();
        let moves = blueprint.map(|blueprint| blueprint.moves().to_vec()).unwrap_or_default();
        let hooks = self.hooks(action).await?;
        let rollback = !self.stack.disable_rollback && self.stack.parent.is_none();
        let is_barred = barred.is_some();
        self.events.retain(|event| matches!(event, Event::Finished { .. } | Event::Stepped { .. }));
        let metadata = |part: &Value| part.get("metadata").cloned().unwrap_or_else(|| Map::new().into());
        let adopted = self.request.adopted.iter().map(|(name, part)| (name.clone(), metadata(part))).collect();
        self.sizes = Sizes::of(&self.model, targets.len());
        let allowed = self.request.allowed.clone();
        let new = Request::new(self.stack.id, action, generation);
        let guards = self.read_guards().await?;
        // Paths with slashes are of nested stacks.
        let skipped = self.stack.details.skip.iter().filter(|path| !path.contains('/')).cloned().collect();
        let begin = Request { targets, moves, rollback, hooks, adopted, skipped, barred, allowed, guards, ..new };
        let commands = self.model.decide(backends.clock.now(), Event::Begin(Box::new(begin)));
        self.request.unseen = self.model.rows().map(|row| row.id).collect();
        self.removing.end = None;
        if self.stack.parent.is_none() && !is_barred {
            self.keep_unfinished_snapshot().await?;
            if action == Action::Delete && !self.stack.details.keep_objects {
                self.remove_all_snapshots().await?;
            }
            self.complete_unfinished_snapshot();
        }
        self.carry_out_all(commands);
        self.inbox.look_at_all();
        Ok(())
    }

    /// A rollback that the release before has begun has the number of the request that failed: it begins again.
    async fn give_number_to_rollback(&mut self) -> Result<(), Error> {
        if self.stack.rollback().is_some() && !self.stack.details.own_number {
            let now = self.actor.backends.clock.now();
            let rollback = StackRequest::rollback(self.stack.generation, self.stack.details.only_adopted, now);
            let batch = Batch { rollback: Some(rollback), ..Batch::default() };
            self.stack = self.actor.backends.store.commit(self.actor.lease, batch).await?;
        }
        Ok(())
    }

    /// The hooks of the resources. A delete has those of the stored environment.
    async fn hooks(&self, action: Action) -> Result<Hooks, Error> {
        match (action, &self.request.scope) {
            (Action::Create | Action::Update | Action::Restore, Some(scope)) => {
                let blueprint = scope.blueprint();
                let names = blueprint.definitions().keys().map(String::as_str);
                Ok(hooks_of(&blueprint.sources().environment.registry, names))
            }
            (Action::Delete, _) => {
                let store = &self.actor.backends.store;
                let text = store.content(&self.stack.desired.environment).await?;
                if !text.contains("\"hooks\"") {
                    return Ok(Hooks::new());
                }
                let environment = load::environment(&text)?;
                Ok(hooks_of(&environment.registry, self.model.rows().map(|row| row.name.as_str())))
            }
            _ => Ok(Hooks::new()),
        }
    }

    /// The resources of the data that the stack adopts.
    async fn data_to_adopt(&self) -> Result<Map, Error> {
        let Some(id) = self.stack.details.snapshot else { return Ok(Map::new()) };
        let data = self.actor.backends.store.snapshot(self.stack.id, id).await?.map(|adopted| adopted.data);
        Ok(data.as_ref().and_then(|data| data.get("resources")).and_then(Value::as_map).cloned().unwrap_or_default())
    }

    /// Shows the rows that have changed to the functions of the definition of a resource. Most rows are read by no
    /// function, or only after they have changed again.
    fn refresh_scope(&mut self, name: &str) {
        if self.request.scope.as_ref().is_none_or(|scope| scope.blueprint().requires(name).is_empty()) {
            return;
        }
        let changed = std::mem::take(&mut self.request.unseen);
        let Some(scope) = &mut self.request.scope else { return };
        for row in changed.into_iter().filter_map(|id| self.model.row(id)) {
            if self.model.current(&row.name).is_some_and(|current| current.id == row.id) {
                scope.see(row);
            }
        }
    }

    /// The timeout of the request, from its beginning, also after a take-over.
    async fn end_of_time(&self) -> Duration {
        let since = self.stack.updated.unwrap_or(self.stack.created);
        let spent = |now: Timestamp| Duration::try_from(now.duration_since(since)).unwrap_or_default();
        let backends = &self.actor.backends;
        let mut passed = spent(backends.clock.now());
        if passed > OLD {
            // The clock of the database may have been set back since this engine has read it.
            passed = backends.store.now().await.map_or(passed, spent);
        }
        self.now().saturating_add(self.action_timeout().saturating_sub(passed))
    }

    fn action_timeout(&self) -> Duration {
        match self.stack.timeout_mins {
            Some(minutes) if minutes > 0 => {
                Duration::from_secs(u64::try_from(minutes).unwrap_or(60).saturating_mul(60))
            }
            _ => self.actor.options.action_timeout,
        }
    }

    /// Passes all pending events to the planner and executes its commands.
    async fn decide_all(&mut self) -> Result<(), Error> {
        self.read_hidden().await?;
        while let Some(mut event) = self.next_event() {
            self.mask(&mut event).await?;
            let mut saved = None;
            if let Event::Finished { row, .. } = &event {
                self.slots.remove(*row);
                self.watches.remove(*row);
                let is_saved = |row: &&Resource| row.running().is_some() && self.is_of_earlier_snapshot(row);
                saved = self.model.row(*row).filter(is_saved).map(|row| row.id);
                if let Some(row) = self.model.row(*row) {
                    self.inbox.look_at(&row.name);
                }
            }
            self.decide(event);
            if let Some(row) = saved {
                self.keep_late_copy(row).await?;
                self.complete_unfinished_snapshot();
            }
            self.results = self.results.saturating_sub(1);
            // A row whose result is known is written once.
            if self.writes.len() >= self.actor.options.batch && self.results == 0 {
                self.flush().await?;
                if self.again {
                    break;
                }
                if !*self.actor.drain.borrow() {
                    self.call_queued();
                }
            }
        }
        Ok(())
    }

    /// The next event for the planner, if need be from the next question that can be answered at once.
    fn next_event(&mut self) -> Option<Event> {
        while self.events.is_empty() {
            let (serial, name, row) = self.questions.pop_front()?;
            // After a failure, for example, the planner does not ask any more.
            if self.model.asks(&name, serial) {
                self.gather(serial, name, row);
            }
        }
        self.events.pop_front()
    }

    /// Passes one event to the planner and executes its commands, without storing anything in between.
    fn decide(&mut self, event: Event) {
        let commands = self.model.decide(self.actor.backends.clock.now(), event);
        self.carry_out_all(commands);
    }

    fn carry_out_all(&mut self, commands: Vec<Command>) {
        for command in commands {
            self.carry_out(command);
        }
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Save(id) => {
                if let Some(row) = self.model.row(id) {
                    self.writes.save(id);
                    self.request.unseen.insert(id);
                    self.inbox.look_at(&row.name);
                }
            }
            Command::Remove(id) => self.writes.remove(id),
            Command::Moved(id, from) => {
                if let Some(row) = self.model.row(id) {
                    self.inbox.rename(&from, &row.name);
                }
            }
            Command::Note(note) => {
                let event = self.resource_event(*note);
                self.writes.event(event);
            }
            Command::Orphan(note, parting) => self.writes.orphan(self.orphan(*note, *parting)),
            Command::Decide { serial, name, row } => self.questions.push_back((serial, name, row)),
            Command::Start(id) => {
                if self.slots.is_busy(id) {
                    // The result of the operation that this one supersedes.
                    self.events.retain(|event| !matches!(event, Event::Finished { row, .. } if *row == id));
                }
                self.dispatch(id, false);
            }
            Command::Resume(id) => self.dispatch(id, true),
            Command::Interrupt(id) => self.interrupt(id),
            Command::End { state, reason, rolls_back } => {
                self.end(state, reason);
                if rolls_back {
                    self.roll_back();
                }
            }
        }
    }

    fn end(&mut self, state: State, reason: String) {
        if !self.request.active {
            return;
        }
        let Some((state, reason)) = self.after_snapshots(state, reason) else { return };
        let skip = &self.stack.details.skip;
        let has_skipped = state.status == Status::Complete && !skip.is_empty();
        let reason = if has_skipped { format!("{reason}; skipped: {}", skip.join(", ")) } else { reason };
        self.run_plugins_after(state, &reason);
        self.span.end(state, &reason);
        self.count_operation(state);
        self.writes.event(self.stack_event(state, reason.clone()));
        let reached = state.status == Status::Complete
            && !has_skipped
            && matches!(state.action, Action::Create | Action::Update | Action::Adopt | Action::Restore);
        self.writes.settle = Some(Settle {
            generation: self.request.generation,
            state,
            reason,
            deleted: state.is_complete(Action::Delete),
            reached,
            now: self.actor.backends.clock.now(),
        });
        self.forget_adopted();
        self.request.active = false;
        self.request.deadline = None;
        self.cancels_are_handled();
        self.inbox.look_at_all();
    }

    /// Counts the end of an operation, for metrics.
    fn count_operation(&self, state: State) {
        let begun = self.stack.updated.unwrap_or(self.stack.created);
        let spent = self.actor.backends.clock.now().duration_since(begun);
        let us = u64::try_from(spent.as_micros()).unwrap_or(0);
        let (action, status) = (state.action.as_str(), state.status.as_str());
        tracing::trace!(target: "kiln::metric", metric = "operations", us, action, status);
    }

    /// The request has failed: a rollback follows it.
    fn roll_back(&mut self) {
        let Stack { id, name, project, .. } = &self.stack;
        let state = State::new(Action::Rollback, Status::InProgress);
        tracing::info!(stack = %id, name, project, %state, "stack");
        let now = self.actor.backends.clock.now();
        // A failed adopt must not delete what it has not created.
        self.writes.rollback = Some(StackRequest::rollback(self.request.generation, self.stack.adopts(), now));
        // Messages wait for the end of the rollback.
        self.request.active = true;
    }

    /// The data to adopt is not needed any more.
    fn forget_adopted(&mut self) {
        if self.stack.adopts() {
            self.writes.removed_snapshots.extend(self.stack.details.snapshot);
        }
    }

    /// Prepares the decision about a resource; most decisions need no calls and are made immediately.
    fn gather(&mut self, serial: u64, name: String, row: Option<ResourceId>) {
        self.refresh_scope(&name);
        let Some(scope) = &self.request.scope else { return };
        let Some(kind) = scope.blueprint().kind(&name) else { return };
        let Some(definition) = scope.blueprint().definitions().get(&name) else { return };
        let kind = (definition.resource_type.clone(), kind.implementation().to_owned());
        let fresh = ResourceId(self.actor.backends.chance.uuid());
        let is_update = self.stack.state.action == Action::Update;
        let gatherer = Gatherer {
            backends: &self.actor.backends,
            scope,
            model: &self.model,
            stack: &self.stack,
            root: Arc::clone(&self.root),
            is_preview: false,
            call_retries: self.actor.options.call_retries,
            request: Some(self.request.generation),
            nested_depth: self.actor.options.nested_depth,
            converging: if is_update { self.stack.details.converge.of(&name) } else { Converging::None },
            guards: self.model.guards().map(|guards| &**guards),
        };
        let mut row = row.and_then(|row| self.model.row(row)).cloned();
        if let Some(row) = row.as_mut().filter(|row| self.request.planned_objects.is_replaced(row.id)) {
            // As if a user had marked it as unhealthy.
            row.state = State::new(Action::Check, Status::Failed);
        }
        let replacement = row.as_ref().and_then(|row| self.model.row(row.replaced_by?));
        let replacement = replacement.map(|row| row.properties().clone());
        let is_missing = row.as_ref().is_some_and(|row| self.request.planned_objects.is_missing(row.id));
        let Some(mut question) = gatherer.question(&name, row, replacement) else { return };
        if let Ok(question) = &mut question {
            question.is_missing = is_missing;
        }
        let question = match question.and_then(|question| self.sizes.check(question)) {
            Ok(question) => question,
            Err(decision) => {
                let attributes = Map::new();
                self.events.push_back(Event::Decided { serial, name, decision, fresh, kind, attributes });
                return;
            }
        };
        let answer = unless_stopped(question.answer(), self.actor.drain.clone());
        let task = Task::new(answer.map(Ok), move |answer| {
            let refuse = |failure| Answer::of(Decision::Refuse { failure });
            let Answer { decision, attributes, .. } = answer.unwrap_or_else(refuse);
            Reply::Event(Event::Decided { serial, name, decision, fresh, kind, attributes })
        });
        if let Some(reply) = self.reply_or_spawn(task) {
            self.take(Ok(reply));
        }
    }

    /// Reads the row of the stack, and new messages.
    async fn read_stack(&mut self) -> Result<(), Error> {
        if let Some(stack) = self.actor.backends.store.stack(self.stack.id).await? {
            self.stack = stack;
        }
        self.look_for_new_messages().await
    }

    /// Checks for a newer request, for messages, and for finished nested stacks.
    async fn look(&mut self) -> Result<(), Error> {
        self.read_stack().await?;
        self.again |= self.stack.generation > self.request.generation;
        let store = Arc::clone(&self.actor.backends.store);
        let also = self.inbox.awaited();
        if self.slots.awaits_children() || !also.is_empty() {
            let ended = store.ended_children(self.stack.id, &also).await?;
            self.look_at_scaling(&ended);
            for child in ended {
                if let Some(row) = self.slots.row_of(child.id) {
                    self.child_ended(row, &child);
                }
            }
        }
        Ok(())
    }
}

/// The result of work that only reads. There is none once the engine stops, and no further attempt: the next engine begins
/// again.
async fn unless_stopped<T>(work: impl Future<Output = T>, mut drain: watch::Receiver<bool>) -> T {
    let stopped = async { _ = drain.wait_for(|stops| *stops).await };
    tokio::select! {
        biased;
        result = work => return result,
        () = stopped => {}
    }
    std::future::pending().await
}
