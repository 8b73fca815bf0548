//! One stack's work under its lease: events in, commands out, everything stored before it is acted upon.

mod children;
mod events;
mod write_queue;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kiln_plan::{Blame, Command, Event, Goal, Kind, Model, Outcome, Running, StackScope, facts, given, metadata};
use kiln_resource::{Action, Operation, ResourceId, StackFacts, State, Status};
use kiln_store::{Error, Lease, Settle, Stack, StackId, Turn};
use kiln_value::{Map, Value};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use self::write_queue::WriteQueue;
use crate::engine::Backends;
use crate::gather::Gatherer;
use crate::load;
use crate::operation::{Advance, Job, RetryLimits};
use crate::options::Options;

/// How an actor ended.
pub(crate) enum Exit {
    /// Nothing is left to do.
    Settled,
    /// Another engine has the stack.
    Lost,
    /// The store failed.
    Broken(Error),
    /// A defect of ours.
    Panicked,
}

impl From<Error> for Exit {
    fn from(error: Error) -> Self {
        match error {
            Error::Stale(_) => Self::Lost,
            other => Self::Broken(other),
        }
    }
}

/// What comes back from work that was spawned.
enum Reply {
    Advanced(ResourceId, Advance),
    Event(Event),
    /// A row's work broke off by a defect of ours.
    Broken(ResourceId, String),
}

/// The work on one stack.
pub(crate) struct Actor {
    lease: Lease,
    backends: Backends,
    options: Arc<Options>,
    wake: Arc<Notify>,
}

impl Actor {
    pub(crate) fn new(lease: Lease, backends: Backends, options: Arc<Options>, wake: Arc<Notify>) -> Self {
        Self { lease, backends, options, wake }
    }

    pub(crate) async fn run(self) -> Exit {
        match self.work().await {
            Ok(()) => Exit::Settled,
            Err(error) => error.into(),
        }
    }

    async fn work(self) -> Result<(), Error> {
        let stack = load::stack(&*self.backends.store, self.lease.stack).await?;
        if !stack.is_pending() {
            return Ok(());
        }
        let rows = self.backends.store.resources(stack.id).await?;
        let root = if stack.root == stack.id {
            Arc::new(stack.clone())
        } else {
            Arc::new(load::stack(&*self.backends.store, stack.root).await?)
        };
        let mut work = Work {
            generation: 0,
            stack,
            root,
            scene: None,
            model: Model::new(rows),
            desk: WriteQueue::default(),
            ready: Vec::new(),
            tasks: JoinSet::new(),
            running: 0,
            interrupts: HashMap::new(),
            doomed: HashSet::new(),
            after: HashMap::new(),
            children: BTreeMap::new(),
            inbox: VecDeque::new(),
            deadline: None,
            again: true,
            settled: false,
            actor: self,
        };
        work.run().await
    }
}

/// The state of the work.
struct Work {
    actor: Actor,
    /// The request that is being worked on.
    generation: i64,
    stack: Stack,
    root: Arc<Stack>,
    /// What template functions see; `None` if nothing of the template is needed.
    scene: Option<StackScope>,
    model: Model,
    /// What is to be stored.
    desk: WriteQueue,
    /// Operations to begin once what they need is stored.
    ready: Vec<(ResourceId, bool)>,
    tasks: JoinSet<Reply>,
    /// Operations that were spawned and have not come back.
    running: usize,
    interrupts: HashMap<ResourceId, watch::Sender<bool>>,
    /// Operations that are to end as soon as they are taken up.
    doomed: HashSet<ResourceId>,
    /// How long an operation waits before its next step.
    after: HashMap<ResourceId, Duration>,
    /// Nested stacks that are awaited, with the resources that they stand for.
    children: BTreeMap<StackId, ResourceId>,
    inbox: VecDeque<Event>,
    deadline: Option<Timestamp>,
    /// A request is to be begun.
    again: bool,
    /// The end of the request is on the desk.
    settled: bool,
}

impl Work {
    async fn run(&mut self) -> Result<(), Error> {
        loop {
            if std::mem::take(&mut self.again) {
                self.begin().await?;
            }
            self.drain_inbox().await?;
            self.flush().await?;
            if self.again {
                continue;
            }
            if self.settled {
                return Ok(());
            }
            self.start_ready();
            if !self.inbox.is_empty() {
                continue;
            }
            self.wait().await?;
        }
    }

    /// Waits for the next thing to happen, and takes all that has.
    async fn wait(&mut self) -> Result<(), Error> {
        let clock = Arc::clone(&self.actor.backends.clock);
        let now = clock.now();
        let poll = self.actor.options.poll;
        let left = self
            .deadline
            .map_or(poll, |deadline| Duration::try_from(deadline.duration_since(now)).unwrap_or_default().min(poll));
        tokio::select! {
            biased;
            Some(reply) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                self.take(reply);
                while let Some(reply) = self.tasks.try_join_next() {
                    self.take(reply);
                }
            }
            () = self.actor.wake.notified() => self.look().await?,
            () = clock.sleep(left) => {
                if self.deadline.is_some_and(|deadline| clock.now() >= deadline) {
                    self.deadline = None;
                    self.inbox.push_back(Event::TimedOut);
                } else {
                    self.look().await?;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, reply: Result<Reply, tokio::task::JoinError>) {
        match reply {
            Ok(Reply::Event(event)) => self.inbox.push_back(event),
            Ok(Reply::Advanced(row, Advance { event, after })) => {
                self.running = self.running.saturating_sub(1);
                self.interrupts.remove(&row);
                self.after.insert(row, after);
                self.inbox.push_back(event);
            }
            Ok(Reply::Broken(row, text)) => {
                self.running = self.running.saturating_sub(1);
                self.interrupts.remove(&row);
                self.inbox.push_back(self.failed(row, "InternalError", &text));
            }
            Err(error) => tracing::error!(%error, "a task was lost"),
        }
    }

    fn failed(&self, row: ResourceId, class: &str, text: &str) -> Event {
        let name = self.model.row(row).map(|row| row.name.clone()).unwrap_or_default();
        let failure = kiln_resource::Failure::other(class, text);
        let outcome = Outcome::Failed(Blame::of(&name, &failure));
        Event::Finished { row, physical_id: None, data: Map::new(), attributes: None, outcome }
    }

    /// Begins what is asked for now.
    async fn begin(&mut self) -> Result<(), Error> {
        let backends = &self.actor.backends;
        self.generation = self.stack.generation;
        self.settled = false;
        let action = self.stack.state.action;
        // A rollback has a time of its own: the action before it may have used all of its.
        let since = match action {
            Action::Rollback => backends.clock.now(),
            _ => self.stack.updated.unwrap_or(self.stack.created),
        };
        let timeout = match self.stack.timeout_mins {
            Some(minutes) if minutes > 0 => Duration::from_secs(u64::try_from(minutes).unwrap_or(60) * 60),
            _ => self.actor.options.action_timeout,
        };
        self.deadline = (action != Action::Delete).then(|| since + timeout);
        let desired = match action {
            Action::Delete => None,
            Action::Rollback => self.stack.previous.clone(),
            _ => Some(self.stack.desired.clone()),
        };
        self.scene = None;
        if let Some(desired) = desired {
            match load::blueprint(backends, &self.stack, &desired).await? {
                Ok(blueprint) => {
                    let mut scene = StackScope::new(Arc::new(blueprint), stack_facts(&self.stack));
                    let current: Vec<&str> = scene.blueprint().definitions().keys().map(String::as_str).collect();
                    let rows: Vec<_> = current.iter().filter_map(|name| self.model.current(name)).cloned().collect();
                    for row in &rows {
                        scene.see(row);
                    }
                    self.scene = Some(scene);
                }
                Err(error) => {
                    // It was checked before it was stored: the types or files must have changed since.
                    let reason = format!("{}: {}", error.class, error.message);
                    self.end(State::new(action, Status::Failed), reason);
                    return Ok(());
                }
            }
        }
        let (goal, targets) = match action {
            Action::Check => (Goal::Check, Vec::new()),
            Action::Suspend => (Goal::Suspend, Vec::new()),
            Action::Resume => (Goal::Resume, Vec::new()),
            _ => (
                Goal::Converge,
                self.scene
                    .as_ref()
                    .map(|scene| scene.blueprint().targets(|| ResourceId(backends.chance.uuid())))
                    .unwrap_or_default(),
            ),
        };
        let rollback = !self.stack.disable_rollback && self.stack.parent.is_none();
        let generation = self.generation;
        self.inbox.retain(|event| matches!(event, Event::Finished { .. } | Event::Stepped { .. }));
        self.inbox.push_front(Event::Begin { action, goal, generation, targets, rollback });
        Ok(())
    }

    async fn drain_inbox(&mut self) -> Result<(), Error> {
        while let Some(event) = self.inbox.pop_front() {
            if self.settled {
                break;
            }
            for command in self.model.decide(event) {
                self.carry_out(command).await?;
            }
            if self.desk.len() >= self.actor.options.batch {
                self.flush().await?;
                if self.again {
                    break;
                }
                self.start_ready();
            }
        }
        Ok(())
    }

    async fn carry_out(&mut self, command: Command) -> Result<(), Error> {
        match command {
            Command::Save(id) => {
                self.model.stamp(id, self.stack.id, self.actor.backends.clock.now());
                if let Some(row) = self.model.row(id) {
                    self.desk.save(id);
                    if let Some(scene) = &mut self.scene
                        && self.model.current(&row.name).is_some_and(|current| current.id == id)
                    {
                        scene.see(row);
                    }
                }
            }
            Command::Remove(id) => self.desk.remove(id),
            Command::Note(note) => {
                let event = self.resource_event(*note);
                self.desk.event(event);
            }
            Command::Judge { serial, name, row } => self.judge(serial, name, row),
            Command::Start(id) => self.dispatch(id, false),
            Command::Resume(id) => self.dispatch(id, true),
            Command::Interrupt(id) => self.interrupt(id),
            Command::RollBack { reason } => {
                let failed = State::new(self.stack.state.action, Status::Failed);
                let state = State::new(Action::Rollback, Status::InProgress);
                let started = "Stack ROLLBACK started".to_owned();
                self.desk.event(self.stack_event(failed, reason));
                self.desk.event(self.stack_event(state, started.clone()));
                self.desk.turn = Some(Turn { generation: self.generation, state, reason: started });
                self.flush().await?;
                self.again = true;
            }
            Command::End { state, reason } => {
                self.end(state, reason);
            }
        }
        Ok(())
    }

    fn end(&mut self, state: State, reason: String) {
        self.desk.event(self.stack_event(state, reason.clone()));
        let reached = state.status == Status::Complete
            && matches!(state.action, Action::Create | Action::Update | Action::Adopt | Action::Restore);
        self.desk.settle = Some(Settle {
            generation: self.generation,
            state,
            reason,
            deleted: state.is_complete(Action::Delete),
            reached,
            now: self.actor.backends.clock.now(),
        });
        self.settled = true;
    }

    /// Asks what becomes of a resource; most answers need nothing from outside and come at once.
    fn judge(&mut self, serial: u64, name: String, row: Option<ResourceId>) {
        let Some(scene) = &self.scene else { return };
        let Some(kind) = scene.blueprint().kind(&name) else { return };
        let Some(definition) = scene.blueprint().definitions().get(&name) else { return };
        let kind = (definition.resource_type.clone(), kind.implementation().to_owned());
        let fresh = ResourceId(self.actor.backends.chance.uuid());
        let court = Gatherer {
            backends: &self.actor.backends,
            scene,
            stack: &self.stack,
            root: Arc::clone(&self.root),
            call_retries: self.actor.options.call_retries,
        };
        let row = row.and_then(|row| self.model.row(row)).cloned();
        let question = match court.question(&name, row) {
            Some(Ok(question)) => question,
            Some(Err(verdict)) => {
                self.inbox.push_back(Event::Judged { serial, name, verdict, fresh, kind });
                return;
            }
            None => return,
        };
        let mut answer: BoxFuture<'static, Event> = Box::pin(async move {
            let verdict = question.answer().await;
            Event::Judged { serial, name, verdict, fresh, kind }
        });
        match (&mut answer).now_or_never() {
            Some(event) => self.inbox.push_back(event),
            None => {
                self.tasks.spawn(answer.map(Reply::Event));
            }
        }
    }

    /// What a row's type stands for: by the template, or for a row that is to go by what it was made as.
    fn kind_of(&self, name: &str, implementation: &str) -> Option<Kind> {
        let wanted = self.scene.as_ref().and_then(|scene| scene.blueprint().kind(name));
        match wanted.filter(|kind| kind.implementation() == implementation) {
            Some(kind) => Some(kind.clone()),
            None => {
                self.actor.backends.resource_types.types.get(implementation).map(|entry| Kind::Type(Arc::clone(entry)))
            }
        }
    }

    /// Sees to an operation: of a nested stack by a request to it, of a pure type at once, of others when what they
    /// are about to do is stored.
    fn dispatch(&mut self, id: ResourceId, resumed: bool) {
        let Some(row) = self.model.row(id) else { return };
        let Some(running) = Running::from_value(&row.step) else { return };
        let kind = self.kind_of(&row.name, &row.implementation);
        let nested = kind.as_ref().map_or(row.implementation == kiln_plan::kind::TEMPLATE, Kind::is_nested);
        if nested {
            self.dispatch_nested(id, &running, kind);
            return;
        }
        let pure = kind.as_ref().and_then(|kind| kind.entry()).is_some_and(|entry| entry.driver.is_pure());
        match self.job(id, running, kind.as_ref(), resumed) {
            Ok(job) if pure => self.spawn(id, job),
            Ok(_) => self.ready.push((id, resumed)),
            Err(event) => self.inbox.push_back(*event),
        }
    }

    fn job(&mut self, id: ResourceId, running: Running, kind: Option<&Kind>, resumed: bool) -> Result<Job, Box<Event>> {
        let Some(row) = self.model.row(id) else { return Err(Box::new(self.failed(id, "NotFound", "no such row"))) };
        let Some((kind, entry)) = kind.and_then(|kind| Some((kind, kind.entry()?))) else {
            let text = format!("The Resource Type ({}) could not be found.", row.resource_type);
            return Err(Box::new(self.failed(id, "EntityNotFound", &text)));
        };
        let mut facts = facts(row, kind, &stack_facts(&self.stack));
        if let (Operation::Update { .. }, Some(properties)) =
            (&running.operation, running.definition.get("properties").and_then(Value::as_map))
        {
            facts.properties.clone_from(properties);
            facts.given = given_names(&running.definition);
            facts.metadata = metadata(&running.definition);
        }
        let retain =
            running.operation == Operation::Delete && row.definition.str_at("deletion_policy") == Some("Retain");
        let wanted = match (&running.operation, &self.scene) {
            // Of what is only looked at again the attributes stay as they are.
            (Operation::Check, _) if row.definition.get("external_id").is_none() => Vec::new(),
            (_, Some(scene)) => scene.blueprint().wanted_names(&row.name),
            (_, None) => Vec::new(),
        };
        let (sender, interrupt) = watch::channel(self.doomed.remove(&id));
        let job = Job {
            row: id,
            name: row.name.clone(),
            running,
            resumed,
            facts,
            driver: Arc::clone(&entry.driver),
            clouds: Arc::clone(&self.actor.backends.clouds),
            stack: Arc::clone(&self.root),
            wanted,
            retain,
            interrupt,
            after: self.after.remove(&id).unwrap_or_default(),
            clock: Arc::clone(&self.actor.backends.clock),
            chance: Arc::clone(&self.actor.backends.chance),
            patience: RetryLimits {
                action_retries: self.actor.options.action_retries,
                call_retries: self.actor.options.call_retries,
            },
        };
        self.interrupts.insert(id, sender);
        Ok(job)
    }

    fn spawn(&mut self, id: ResourceId, job: Job) {
        self.running += 1;
        let mut work: BoxFuture<'static, Advance> = Box::pin(job.advance());
        if let Some(advance) = (&mut work).now_or_never() {
            self.take(Ok(Reply::Advanced(id, advance)));
            return;
        }
        self.tasks.spawn(async move {
            match std::panic::AssertUnwindSafe(work).catch_unwind().await {
                Ok(advance) => Reply::Advanced(id, advance),
                Err(_) => Reply::Broken(id, "the resource type's code broke".to_owned()),
            }
        });
    }

    /// Begins what may begin now that it is stored, as many at a time as the cloud should bear.
    fn start_ready(&mut self) {
        let room = self.actor.options.max_operations.saturating_sub(self.running);
        let now: Vec<_> = self.ready.drain(..room.min(self.ready.len())).collect();
        for (id, resumed) in now {
            let Some(row) = self.model.row(id) else { continue };
            let Some(running) = Running::from_value(&row.step) else { continue };
            let kind = self.kind_of(&row.name, &row.implementation);
            match self.job(id, running, kind.as_ref(), resumed) {
                Ok(job) => self.spawn(id, job),
                Err(event) => self.inbox.push_back(*event),
            }
        }
    }

    fn interrupt(&mut self, id: ResourceId) {
        if let Some(interrupt) = self.interrupts.get(&id) {
            // Gone already: its result is on the way.
            let _ = interrupt.send(true);
            return;
        }
        if let Some(child) = self.children.iter().find(|(_, row)| **row == id).map(|(child, _)| *child) {
            self.children.remove(&child);
            self.inbox.push_back(self.failed(id, "ResourceFailure", "aborted (user triggered cancel)"));
            return;
        }
        // Not begun yet: then it never is.
        if let Some(at) = self.ready.iter().position(|(ready, resumed)| *ready == id && !resumed) {
            self.ready.remove(at);
            self.inbox.push_back(self.failed(id, "ResourceFailure", "aborted (user triggered cancel)"));
            return;
        }
        self.doomed.insert(id);
    }

    /// Stores what is on the desk, then sees whether something newer is asked for.
    async fn flush(&mut self) -> Result<(), Error> {
        let store = &self.actor.backends.store;
        let mut stored = false;
        while let Some(batch) = self.desk.take(&self.model, self.actor.options.batch) {
            self.stack = store.commit(self.actor.lease, batch).await?;
            stored = true;
        }
        if !stored {
            return Ok(());
        }
        if self.stack.id == self.root.id {
            self.root = Arc::new(self.stack.clone());
        }
        if self.stack.generation > self.generation && self.generation > 0 {
            self.again = true;
        } else if self.settled
            && self.stack.deleted.is_some()
            && self.stack.parent.is_none()
            && let Some(credentials) = self.stack.credentials
        {
            store.delete_credentials(credentials).await?;
        }
        Ok(())
    }

    /// Looks for a newer request and for nested stacks that have come to their end.
    async fn look(&mut self) -> Result<(), Error> {
        let store = &self.actor.backends.store;
        if let Some(stack) = store.stack(self.stack.id).await?
            && stack.generation > self.generation
        {
            self.stack = stack;
            self.again = true;
        }
        if self.children.is_empty() {
            return Ok(());
        }
        for child in store.children(self.stack.id).await? {
            if child.settled < child.generation && !child.deleted {
                continue;
            }
            if let Some(row) = self.children.remove(&child.id) {
                self.child_ended(row, &child);
            }
        }
        Ok(())
    }
}

/// What drivers are told of a stack.
pub(crate) fn stack_facts(stack: &Stack) -> StackFacts {
    StackFacts {
        id: stack.id.to_string(),
        name: stack.name.clone(),
        project_id: stack.project.clone(),
        user_project_id: stack.user_project.clone(),
    }
}

fn given_names(definition: &Value) -> Vec<String> {
    given(definition).map(|given| given.keys().cloned().collect()).unwrap_or_default()
}
