//! Nested stacks: requests to them and their results.
//!
//! A driver may request a series of nested templates ([`kiln_resource::Nested::then`]). The progress is stored in the
//! phase of the resource's operation, so that any engine can continue.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kiln_plan::{Blame, Event, Kind, NestedSources, Outcome, Sources, define, facts, failure_of, observe};
use kiln_resource::{Action, Driver, Facts, Failure, Member, Operation, Phase, ResourceId, Running, State, Status};
use kiln_stack::call_retry::Attempts;
use kiln_stack::loaded_stack::{GroupContent, group_content, inside};
use kiln_stack::sizes::check_outputs;
use kiln_stack::{Backends, load};
use kiln_store::{
    Cancel, Details, Error, MessageBody, NewStack, Parent, Snapshot, SnapshotId, Stack, StackId, StackRequest, Summary,
};
use kiln_value::{Class, Map, Value, text, value};
use serde::{Deserialize, Serialize};

use super::calls::{Reply, finished, later};
use super::task::Task;
use super::{Work, stack_facts};
use crate::step::{Memory, abort_failure};

/// The state of an operation on a nested stack, in [`Phase::Wait`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct NestedState {
    /// Whether the request was sent and is awaited. False: the delay before the next step.
    asked: bool,
    /// The argument for the next call of the driver; `None`: this is the last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    then: Option<Value>,
    /// Delay before that in milliseconds.
    #[serde(default)]
    pause: u64,
    /// The end of the delay, for another engine: microseconds since the epoch, by the wall clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<i64>,
}

/// What is left of the delay before the next step of an operation that another engine has begun. Wall clocks differ: never
/// more than the delay.
pub(super) fn pause_left(running: &Running, now: Timestamp) -> Option<Duration> {
    let state = NestedState::of(running).filter(|state| !state.asked)?;
    let left = u64::try_from(state.until?.saturating_sub(now.as_microsecond())).ok().filter(|left| *left > 0)?;
    Some(Duration::from_micros(left).min(Duration::from_millis(state.pause)))
}

impl NestedState {
    fn of(running: &Running) -> Option<Self> {
        let Phase::Wait(state) = &running.phase else { return None };
        let state = serde_json::to_value(state).ok()?;
        serde_json::from_value(state).ok()
    }

    fn phase(&self) -> Phase {
        let mut state = value!({"asked": (self.asked), "pause": (Value::from(i64::try_from(self.pause).unwrap_or(0)))});
        if let (Some(state), Some(then)) = (state.as_map_mut(), &self.then) {
            state.insert("then".to_owned(), then.clone());
        }
        if let (Some(state), Some(until)) = (state.as_map_mut(), self.until) {
            state.insert("until".to_owned(), until.into());
        }
        Phase::Wait(state)
    }
}

impl Work {
    /// An operation on a nested stack is a request to it, stored together with the row of the resource.
    pub(super) fn dispatch_nested(&mut self, id: ResourceId, running: &Running, kind: Option<Kind>) {
        let Some(row) = self.model.row(id) else { return };
        let child: Option<StackId> = row.physical_id.as_deref().and_then(|id| id.parse().ok());
        let state = NestedState::of(running);
        match (state, child) {
            (Some(NestedState { asked: true, .. }), Some(child)) => {
                self.slots.wait_for(id, child);
                // The nested stack may have finished before this engine took over.
                self.actor.wake.notify_one();
            }
            (Some(_), Some(_)) if self.slots.is_asleep(id) => {}
            (Some(state), Some(_)) => self.ask(id, running, child, kind, state.then.unwrap_or_default()),
            _ => self.ask(id, running, child, kind, Value::Null),
        }
    }

    /// The delay between two steps has passed.
    pub(super) fn next_nested(&mut self, id: ResourceId) {
        let Some(row) = self.model.row(id) else { return };
        let Some(running) = row.running().cloned() else { return };
        let kind = self.kind_of(&row.name, &row.implementation);
        self.dispatch_nested(id, &running, kind);
    }

    fn ask(&mut self, id: ResourceId, running: &Running, child: Option<StackId>, kind: Option<Kind>, step: Value) {
        let Some(row) = self.model.row(id) else { return };
        let keeps = self.stack.details.keep_objects;
        match (&running.operation, child) {
            (Operation::Delete, child) if child.is_none() || (row.is_retained() && !keeps) => {
                self.finish(id, Outcome::Done(None));
            }
            (Operation::Create | Operation::Update { .. }, child)
                if kind.as_ref().is_some_and(is_group)
                    && (child.is_some() || self.prepares(id, running, kind.as_ref()).is_some()) =>
            {
                let preparation = self.prepares(id, running, kind.as_ref());
                self.read_members(id, child, step, preparation);
            }
            (Operation::Create | Operation::Adopt | Operation::Update { .. }, child) => {
                self.ask_for(id, child, running, kind, step, GroupContent::default());
            }
            (operation, Some(child)) => {
                let action = match operation {
                    Operation::Delete => Action::Delete,
                    Operation::Suspend => Action::Suspend,
                    Operation::Resume => Action::Resume,
                    Operation::Snapshot => Action::Snapshot,
                    _ => Action::Check,
                };
                let details = Details {
                    keep_objects: keeps && action == Action::Delete,
                    only_adopted: self.stack.details.only_adopted,
                    operation: Some(self.stack.operation()),
                    planned: self.planned_inside(&row.name, &row.resource_type, false),
                    ..Details::default()
                };
                let now = self.actor.backends.clock.now();
                let request = StackRequest { details, ..StackRequest::new(action, now) };
                if action == Action::Delete && self.stack.state.action != Action::Delete {
                    // The load balancers stay.
                    self.tell_balancers(id, Vec::new());
                }
                self.writes.request(child, request);
                let state = NestedState { asked: true, ..NestedState::default() };
                self.step_to_wait(id, None, Map::new(), &state, running, None);
            }
            (_, None) => self.finish(id, Outcome::Done(None)),
        }
    }

    fn finish(&mut self, id: ResourceId, outcome: Outcome) {
        self.slots.answered(id, None);
        self.events.push_back(finished(id, outcome));
    }

    /// Reads the members of a group, from which its driver generates the next template.
    fn read_members(&mut self, id: ResourceId, child: Option<StackId>, step: Value, preparation: Option<Preparation>) {
        let number = self.slots.reading(id);
        let backends = self.actor.backends.clone();
        let read = async move {
            let mut content = match child {
                Some(child) => group_content(&backends, child).await?,
                None => GroupContent::default(),
            };
            if let Some(preparation) = preparation {
                content.prepared = preparation.run().await?;
            }
            Ok(content)
        };
        self.spawn(Task::new(read, move |content| Reply::Group(id, number, step, content)));
    }

    /// What the driver of a group must read in the cloud before it generates the template.
    fn prepares(&self, id: ResourceId, running: &Running, kind: Option<&Kind>) -> Option<Preparation> {
        let (row, kind) = (self.model.row(id)?, kind?);
        let entry = kind.entry()?;
        let mut facts = facts(row, kind, &stack_facts(&self.stack));
        define(&mut facts, kind, running.definition.as_ref().or(row.definition.as_ref())?);
        self.observe_for(id, kind, &mut facts).ok()?;
        entry.driver.nested_stack()?.prepares(&facts)?;
        Some(Preparation {
            driver: Arc::clone(&entry.driver),
            facts,
            backends: self.actor.backends.clone(),
            root: Arc::clone(&self.root),
            attempts: self.attempts(),
        })
    }

    /// The members of a group were read: requests the next template, unless the operation was interrupted meanwhile.
    pub(super) fn members_read(&mut self, id: ResourceId, step: Value, group: Result<GroupContent, Failure>) {
        let Some(row) = self.model.row(id) else { return };
        let Some(running) = row.running().cloned() else { return };
        let child = row.child;
        let kind = self.kind_of(&row.name, &row.implementation);
        let interrupted = || Err(abort_failure(&running, &self.slots.memory(id)));
        match if self.slots.is_interrupted(id) { interrupted() } else { group } {
            Ok(group) => self.ask_for(id, child, &running, kind, step, group),
            Err(failure) => self.fail(id, &failure),
        }
    }

    fn fail(&mut self, id: ResourceId, failure: &Failure) {
        let event = self.failed(id, failure);
        self.slots.answered(id, None);
        self.events.push_back(event);
    }

    /// Requests the nested stack as the driver wants it: creates it, or updates the existing one.
    fn ask_for(
        &mut self,
        id: ResourceId,
        child: Option<StackId>,
        running: &Running,
        kind: Option<Kind>,
        step: Value,
        group: GroupContent,
    ) {
        let asked = match self.nested_sources(id, running, kind, step, group) {
            Ok(asked) => asked,
            Err(failure) => return self.fail(id, &failure),
        };
        self.drain_members(id, &asked.members, &asked.sources.template);
        let Some(row) = self.model.row(id) else { return };
        let backends = &self.actor.backends;
        let desired = load::texts(&asked.sources);
        let made = if let Some(child) = child {
            let mut request = StackRequest::new(Action::Update, backends.clock.now());
            request.desired = Some(desired);
            request.timeout_mins = asked.timeout_mins;
            request.details.operation = Some(self.stack.operation());
            request.details.planned = self.planned_inside(&row.name, &row.resource_type, true);
            request.details.skip = self.stack.details.skipped_inside(&row.name);
            request.details.batch = asked.state.then.is_some();
            if self.stack.state.action == Action::Update {
                request.details.converge = self.stack.details.converge.inside(&row.name);
            }
            self.writes.request(child, request);
            None
        } else {
            let child = StackId(backends.chance.uuid());
            let adopt = (running.operation == Operation::Adopt).then(|| Snapshot {
                id: SnapshotId(backends.chance.uuid()),
                stack: child,
                name: None,
                state: State::new(Action::Adopt, Status::InProgress),
                reason: String::new(),
                data: self.request.adopted.get(&row.name).cloned().unwrap_or_default(),
                created: backends.clock.now(),
            });
            self.writes.child(NewStack {
                id: child,
                name: kiln_resource::physical_name::physical_name(&self.stack.name, &row.name, row.id.0, 255),
                project: self.stack.project.clone(),
                parent: Some(Parent { stack: self.stack.id, resource: id, resource_name: row.name.clone() }),
                root: self.stack.root,
                depth: self.stack.depth + 1,
                action: if adopt.is_some() { Action::Adopt } else { Action::Create },
                desired,
                disable_rollback: true,
                timeout_mins: asked.timeout_mins.or(self.stack.timeout_mins),
                tags: Vec::new(),
                username: self.stack.username.clone(),
                user_id: self.stack.user_id.clone(),
                credentials: None,
                user_project: self.stack.user_project.clone(),
                adopt,
                operation: Some(self.stack.operation()),
                preflight: false,
                planned: self.planned_inside(&row.name, &row.resource_type, false),
                now: backends.clock.now(),
            });
            Some(child)
        };
        self.step_to_wait(id, made, asked.data, &asked.state, running, None);
    }

    fn step_to_wait(
        &mut self,
        id: ResourceId,
        child: Option<StackId>,
        data: Map,
        state: &NestedState,
        running: &Running,
        after: Option<Duration>,
    ) {
        self.slots.answered(id, after);
        // Immediately: the row is stored in one commit with the request.
        self.decide(Event::Stepped {
            row: id,
            physical_id: child.map(|child| child.to_string()),
            child,
            data,
            phase: state.phase(),
            attempt: running.attempt,
            token: running.token.clone(),
        });
    }

    /// The sources of the nested stack, and the data that the resource must store.
    fn nested_sources(
        &self,
        id: ResourceId,
        running: &Running,
        kind: Option<Kind>,
        step: Value,
        group: GroupContent,
    ) -> Result<Asked, Failure> {
        let gone = || Failure::other(Class::NotFound, "the template of the nested stack does not exist");
        let row = self.model.row(id).ok_or_else(gone)?;
        let kind = kind.ok_or_else(gone)?;
        let scope = self.request.scope.as_ref().ok_or_else(gone)?;
        let blueprint = scope.blueprint();
        let definition = blueprint.definitions().get(&row.name).ok_or_else(gone)?;
        let mut facts = facts(row, &kind, &stack_facts(&self.stack));
        if let Some(definition) = running.definition.as_ref().or(row.definition.as_ref()) {
            define(&mut facts, &kind, definition);
        }
        if let Operation::Update { changed, .. } = &running.operation {
            facts.nested.changed = changed.keys().cloned().collect();
        }
        // All members are adopted at once: a member of a later batch would be created, and its object left behind.
        facts.nested.last_step = running.operation == Operation::Adopt;
        facts.nested.action_timeout = Some(self.action_timeout());
        (facts.nested.step, facts.nested.members) = (step, group.members);
        facts.data.extend(group.prepared.clone());
        self.observe_for(id, &kind, &mut facts)?;
        let nested = blueprint.nested_sources(definition, &facts).ok_or_else(gone)?;
        let NestedSources { mut sources, mut data, then, pause, timeout_mins } =
            nested.map_err(|error| failure_of(&error))?;
        data.extend(group.prepared);
        sources.keep_files(&group.files);
        let pause = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        Ok(Asked {
            sources,
            data,
            members: facts.nested.members,
            timeout_mins,
            state: NestedState { asked: true, then, pause, until: None },
        })
    }

    /// Adds the resources that the driver of a group reads; they must exist.
    pub(super) fn observe_for(&self, id: ResourceId, kind: &Kind, facts: &mut Facts) -> Result<(), Failure> {
        let (Some(row), Some(entry)) = (self.model.row(id), kind.entry()) else { return Ok(()) };
        let wanted: Vec<Value> = entry.driver.observes(facts).into_iter().filter(|id| !id.is_null()).collect();
        observe(&self.model, row, &*entry.driver, |row| self.kind_of(&row.name, &row.implementation), facts);
        match wanted.first() {
            Some(first) if facts.observed.is_empty() => {
                let text = format!("The Resource ({}) could not be found.", text::str(first));
                Err(Failure::other(Class::EntityNotFound, text))
            }
            _ => Ok(()),
        }
    }

    /// A nested stack has finished: requests the next step, or reads its outputs and ends the operation.
    pub(super) fn child_ended(&mut self, id: ResourceId, child: &Summary) {
        let Some(row) = self.model.row(id) else { return };
        let name = row.name.clone();
        let Some(running) = row.running().cloned() else { return };
        if self.slots.is_interrupted(id) {
            let memory = Memory { waits_for: Some("its nested stack".to_owned()), ..self.slots.memory(id) };
            return self.fail(id, &abort_failure(&running, &memory));
        }
        // It ended a request of the operation that this one has superseded.
        if !NestedState::of(&running).is_some_and(|state| state.asked) {
            return;
        }
        if child.state.action == Action::Delete && running.operation != Operation::Delete {
            // A user has deleted it, or the delete of this stack failed before that of the nested stack had ended.
            let gone = Failure::other(Class::NotFound, "the nested stack does not exist any more");
            return self.finish(id, Outcome::Failed(Blame::of(&name, &gone)));
        }
        if child.state.status == Status::Failed {
            let blame = match Blame::from_stack_reason(&child.reason) {
                Some(blame) => blame.below(&name),
                None => Blame::plain(&name, &child.reason),
            };
            self.finish(id, Outcome::Failed(blame));
            return;
        }
        if let Some(state @ NestedState { then: Some(_), .. }) = NestedState::of(&running) {
            let pause = Duration::from_millis(state.pause);
            let ends = self.actor.backends.clock.now().saturating_add(pause).unwrap_or(Timestamp::MAX);
            let next = NestedState { asked: false, until: Some(ends.as_microsecond()), ..state };
            let until = later(self.now(), pause);
            self.step_to_wait(id, None, Map::new(), &next, &running, until);
            return;
        }
        if !matches!(running.operation, Operation::Create | Operation::Adopt | Operation::Update { .. }) {
            self.finish(id, Outcome::Done(None));
            return;
        }
        let wanted = self.request.scope.as_ref().map(|scope| scope.blueprint().wanted_paths(&name)).unwrap_or_default();
        let by_age = self.kind_of(&row.name, &row.implementation).is_some_and(|kind| kind.members_by_age());
        let (backends, child) = (self.actor.backends.clone(), child.id);
        let (number, mut kept) = (self.slots.reading(id), row.clone());
        let read = async move {
            kept.attributes = inside(&backends, child, &wanted, by_age).await?.to_map();
            check_outputs(&*backends.store, &kept).map(|()| kept.attributes)
        };
        self.spawn(Task::new(read, move |outputs| {
            let event = match outputs {
                Ok(outputs) => Event::Finished {
                    row: id,
                    physical_id: None,
                    data: Map::new(),
                    attributes: Some(outputs),
                    outcome: Outcome::Done(None),
                },
                Err(failure) => finished(id, Outcome::Failed(Blame::of(&name, &failure))),
            };
            Reply::Inside(id, number, event)
        }));
    }

    /// Cancels the last request to a nested stack; `requests` are not stored yet. The message contains the generation
    /// of that request, so that a late message does not cancel a later request.
    pub(super) async fn cancel_child(&mut self, child: StackId, requests: i64) -> Result<(), Error> {
        let backends = &self.actor.backends;
        let stored = backends.store.stack(child).await?.map_or(0, |child| child.generation);
        let out_of_time = self.slots.row_of(child).is_some_and(|row| self.slots.memory(row).out_of_time);
        let cancel = Cancel { generation: Some(stored + requests), interrupt: true, out_of_time };
        self.writes.send(backends.message(child, None, MessageBody::Cancel(cancel)));
        Ok(())
    }
}

/// What the driver of a group reads in the cloud before it generates the template.
struct Preparation {
    driver: Arc<dyn Driver>,
    facts: Facts,
    backends: Backends,
    root: Arc<Stack>,
    attempts: Attempts,
}

impl Preparation {
    /// Reads it, with retries while the cloud does not respond.
    async fn run(mut self) -> Result<Map, Failure> {
        loop {
            let answer = self.read().await;
            if let Some(result) = self.attempts.result(answer).await {
                return result;
            }
        }
    }

    async fn read(&self) -> Result<Map, Failure> {
        let cloud = self.backends.cloud(&self.root, true).await?;
        let software = &self.backends.software(&self.root.project);
        let cx = self.backends.context(&*cloud, software, &self.facts);
        match self.driver.nested_stack() {
            Some(described) => described.prepare(&cx).await,
            None => Ok(Map::new()),
        }
    }
}

/// Whether the driver of a type generates the nested stack. Only such a driver gets the members.
fn is_group(kind: &Kind) -> bool {
    matches!(kind, Kind::Type(_))
}

/// A request for a nested stack.
struct Asked {
    sources: Sources,
    /// Entries for the data of the resource.
    data: Map,
    /// The members before the request.
    members: Vec<Member>,
    timeout_mins: Option<i64>,
    state: NestedState,
}
