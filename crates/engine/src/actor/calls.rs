//! Calls of drivers: start, interrupt, result.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kiln_plan::{Blame, Blueprint, Event, Inside, Kind, Outcome, facts, failure_of, observe};
use kiln_resource::{
    Driver, Facts, Failure, LOST_CREATE, LostCall, Operation, Phase, Received, Resource, ResourceId, SoftwareChange,
    StackFacts,
};
use kiln_stack::call_retry::RetryLimits;
use kiln_stack::loaded_stack::GroupContent;
use kiln_store::Message;
use kiln_value::{Class, Map, Value};
use tracing::Instrument as _;

use super::children::pause_left;
use super::inbox;
use super::scaling::{Group, Resized, Scale};
use super::slots::Interrupted;
use super::snapshots::Removed;
use super::take_over;
use super::task::Task;
use super::{Work, stack_facts};
use crate::imported_object::ImportedObject;
use crate::planned_object::PlannedObject;
use crate::step::{ADOPTED, Advance, Job, Learned, Memory, abort_failure, repeats_after};
use crate::unmarked::{self, UNMARKED};

/// The result of a spawned task.
pub(super) enum Reply {
    /// A step of the operation of a row.
    Advanced(ResourceId, Advance),
    /// An event for the planner.
    Event(Event),
    /// The content of a row's nested stack, with the number of the read.
    Inside(ResourceId, u64, Event),
    /// The members of a group, with the number of the read and the step that needs them.
    Group(ResourceId, u64, Value, Result<GroupContent, Failure>),
    /// A group that a policy wants to change.
    Scale(Box<Scale>, Result<Group, Failure>),
    /// The content of a group whose change of size has ended, and whether it succeeded.
    Scaled(Box<Message>, ResourceId, Option<String>, Result<Resized, Failure>),
    /// The template of the stack, for a load balancer that gets the members of a group.
    Members(Box<Message>, ResourceId, Result<Box<Blueprint>, Failure>),
    /// The result of a message to a resource.
    Received(Box<Message>, ResourceId, Result<Received, Failure>),
    /// The objects of a snapshot are deleted, or not.
    Removed(Box<Removed>),
}

impl Work {
    /// Processes the result of a task.
    pub(super) fn take(&mut self, reply: Result<Reply, tokio::task::JoinError>) {
        match reply {
            Ok(Reply::Event(event)) => self.events.push_back(event),
            Ok(Reply::Inside(row, number, event)) => {
                if self.slots.is_reading(row, number) {
                    let inside = match &event {
                        Event::Finished { attributes: Some(inside), .. } => Some(Inside::from_map(inside)),
                        _ => None,
                    };
                    self.events.push_back(event);
                    if let Some(inside) = inside {
                        self.events.extend(self.group_done(row, inside.refs.len()));
                        self.tell_balancers(row, inside.refs.into_values().collect());
                    }
                }
            }
            Ok(Reply::Scale(scale, group)) => self.group_read(&scale, group),
            Ok(Reply::Members(message, row, blueprint)) => self.balanced(*message, row, blueprint),
            Ok(Reply::Scaled(message, group, failed, resized)) => self.scaled(*message, group, failed, resized),
            Ok(Reply::Group(row, number, step, group)) => {
                if self.slots.is_reading(row, number) {
                    self.members_read(row, step, group);
                }
            }
            Ok(Reply::Advanced(row, Advance::Report { report, after })) => {
                self.request.planned_objects.begin(row);
                self.learn(row, report.learned);
                let until = (!after.is_zero()).then(|| self.now() + after);
                self.slots.answered(row, until);
                self.events.push_back(report.event);
            }
            Ok(Reply::Advanced(row, Advance::Again { after, memory })) => {
                let until = self.now() + after;
                let reason = memory.notice();
                if reason.is_some() || self.model.says_wait(row) {
                    self.events.push_back(Event::Waits { row, reason });
                }
                if let Some(lost) = self.shorter_wait(row, &memory) {
                    self.events.push_back(Event::TakenOver { row, phase: Phase::Lost(lost) });
                }
                self.slots.sleep(row, memory, until);
            }
            Ok(Reply::Received(message, row, result)) => self.received(*message, row, result),
            Ok(Reply::Removed(removed)) => self.removed(*removed),
            // A panic in a task is its reply, and nobody aborts one.
            Err(error) => tracing::error!(%error, "a task failed"),
        }
    }

    /// What is left of the wait for a lost call, to store for the engine that takes over next.
    fn shorter_wait(&self, row: ResourceId, memory: &Memory) -> Option<LostCall> {
        let Phase::Lost(lost) = &self.model.row(row)?.running()?.phase else { return None };
        take_over::shorter(lost, memory.lost?, self.actor.fence.reported(), self.actor.options.call_limit)
    }

    /// What a step has learned is stored in one commit with it.
    fn learn(&mut self, row: ResourceId, learned: Learned) {
        if let Some(project) = learned.user_project.filter(|project| self.stack.user_project.as_ref() != Some(project))
        {
            self.writes.user_project(project);
        }
        self.writes.software(learned.software);
        if let Some(failure) = learned.repeats_after {
            let reason = Some(repeats_after(&failure));
            self.events.push_back(Event::Waits { row, reason });
        }
        for (sibling, received) in learned.received {
            let Ok(row) = sibling.parse() else { continue };
            let reason = received.reason(&Value::Null);
            self.events.push_back(inbox::received(row, received, reason));
        }
    }

    pub(super) fn failed(&self, row: ResourceId, failure: &Failure) -> Event {
        let name = self.model.row(row).map(|row| row.name.clone()).unwrap_or_default();
        finished(row, Outcome::Failed(Blame::of(&name, failure)))
    }

    /// The kind of a row: by the template, or for a row that will be deleted, by its implementation.
    pub(super) fn kind_of(&self, name: &str, implementation: &str) -> Option<Kind> {
        let wanted = self.request.scope.as_ref().and_then(|scope| scope.blueprint().kind(name));
        match wanted.filter(|kind| kind.implementation() == implementation) {
            Some(kind) => Some(kind.clone()),
            None => {
                self.actor.backends.resource_types.types.get(implementation).map(|entry| Kind::Type(Arc::clone(entry)))
            }
        }
    }

    /// Dispatches an operation: to a nested stack by a request, immediately for a type that needs no cloud, otherwise
    /// after the operation is stored.
    pub(super) fn dispatch(&mut self, id: ResourceId, resumed: bool) {
        let Some(row) = self.model.row(id) else { return };
        let Some(running) = row.running() else { return };
        let kind = self.kind_of(&row.name, &row.implementation);
        let nested = kind.as_ref().map_or(row.implementation == kiln_plan::kind::TEMPLATE, Kind::is_nested);
        let driver = kind.as_ref().and_then(Kind::entry).map(|entry| &entry.driver);
        let repeatable = driver.is_some_and(|driver| driver.is_repeatable());
        // Drivers read software configs from the store, so that the configs must be there before.
        let at_once =
            repeatable && driver.is_some_and(|driver| !driver.needs_cloud()) && !self.writes.changes_software();
        if resumed {
            // The engine before may have called already.
            self.request.planned_objects.begin(id);
            let left = running.phase.clone();
            let is_lost = running.operation == Operation::Create && driver.is_some() && !repeatable;
            let phase = if is_lost { self.actor.taken_over.phase(&left) } else { left.clone() };
            let lost = match &phase {
                Phase::Lost(lost) => Some(self.actor.taken_over.believed_from(lost)),
                _ => None,
            };
            self.slots.resume(id, lost);
            if running.operation == Operation::Snapshot && left == Phase::Intent && driver.is_some() && !nested {
                self.slots.may_have_saved(id);
            }
            if let Some(left) = pause_left(running, self.actor.backends.clock.now()).filter(|_| nested) {
                self.slots.sleep(id, Memory::default(), self.now() + left);
            }
            if phase != left {
                self.decide(Event::TakenOver { row: id, phase });
            }
        } else {
            self.slots.add(id);
        }
        let Some(running) = self.model.row(id).and_then(|row| row.running()) else { return };
        if nested {
            let running = running.clone();
            self.dispatch_nested(id, &running, kind);
        } else if at_once && !self.slots.is_asleep(id) {
            let memory = self.slots.call_now(id).unwrap_or_default();
            self.call(id, memory);
        }
    }

    /// Calls queued drivers, up to the concurrency limit.
    pub(super) fn call_queued(&mut self) {
        while let Some((id, memory)) = self.slots.call_next(self.actor.options.max_operations) {
            let nested = self.model.row(id).is_some_and(|row| {
                self.kind_of(&row.name, &row.implementation)
                    .map_or(row.implementation == kiln_plan::kind::TEMPLATE, |kind| kind.is_nested())
            });
            if nested {
                self.next_nested(id);
            } else {
                self.call(id, memory);
            }
        }
    }

    fn call(&mut self, id: ResourceId, memory: Memory) {
        if let Some(event) = self.guarded(id).filter(|_| memory.is_fresh()) {
            self.slots.answered(id, None);
            self.events.push_back(event);
            return;
        }
        let job = match self.job(id, memory) {
            Ok(job) => job,
            Err(event) => {
                self.slots.answered(id, None);
                self.events.push_back(*event);
                return;
            }
        };
        let observed = job.facts.observed.iter().filter_map(|sibling| sibling.id.parse().ok()).collect();
        self.watches.set(id, observed);
        let name = job.name.clone();
        let span = self.span.step(&job);
        let row = self.model.row(id);
        let open = row.and_then(|row| unmarked::open_create(row).map(|token| (row.data.clone(), token.to_owned())));
        let (clock, limit) = (Arc::clone(&self.actor.backends.clock), self.actor.options.call_limit);
        // A panic: the call may go on without us.
        let broken = move |failure: Failure| {
            let data = open.map(|(data, token)| {
                let lost = unmarked::lost(&data, &token, (clock.now() + limit).as_microsecond());
                Map::from([(LOST_CREATE.to_owned(), lost), (UNMARKED.to_owned(), Value::Null)])
            });
            let outcome = Outcome::Failed(Blame::of(&name, &failure));
            let data = data.unwrap_or_default();
            Event::Finished { row: id, physical_id: None, data, attributes: None, outcome }.into()
        };
        let task = Task::new(job.advance().instrument(span).map(Ok), move |advance| {
            Reply::Advanced(id, advance.unwrap_or_else(broken))
        });
        if let Some(reply) = self.reply_or_spawn(task) {
            self.take_first(reply);
        }
    }

    /// Processes a result before all other events, so that the row is written once with it.
    fn take_first(&mut self, reply: Reply) {
        let others = self.events.len();
        self.take(Ok(reply));
        let results = self.events.len().saturating_sub(others);
        self.events.rotate_right(results);
        self.results += results;
    }

    fn job(&self, id: ResourceId, memory: Memory) -> Result<Job, Box<Event>> {
        let gone = |class: Class, text: &str| Box::new(self.failed(id, &Failure::other(class, text)));
        let Some(row) = self.model.row(id) else { return Err(gone(Class::NotFound, "no such row")) };
        let Some(running) = row.running().cloned() else {
            return Err(gone(Class::NotFound, "no operation is in progress"));
        };
        let kind = self.kind_of(&row.name, &row.implementation);
        let Some((kind, entry)) = kind.as_ref().and_then(|kind| Some((kind, kind.entry()?))) else {
            let text = format!("The Resource Type ({}) could not be found.", row.resource_type);
            return Err(gone(Class::EntityNotFound, &text));
        };
        let stack = StackFacts { path: self.path.clone(), ..stack_facts(&self.stack) };
        let mut facts = facts(row, kind, &stack);
        if let Some(definition) = &running.definition {
            facts.properties.clone_from(&definition.properties);
            facts.given = definition.given().keys().cloned().collect();
            facts.metadata = Value::Map(definition.metadata.clone());
        }
        if let (true, Some(scope)) = (entry.driver.takes_sources(), &self.request.scope) {
            let parameters = facts.properties.get("parameters").and_then(Value::as_map);
            match scope.blueprint().travelling_sources(parameters) {
                Ok(sources) => facts.data.extend(sources),
                Err(error) => return Err(Box::new(self.failed(id, &failure_of(&error)))),
            }
        }
        let kind_of = |row: &Resource| self.kind_of(&row.name, &row.implementation);
        observe(&self.model, row, &*entry.driver, kind_of, &mut facts);
        if running.operation == Operation::Create {
            facts.attempt.unmarked_since = unmarked::since(&row.data);
        }
        let wanted = match (&running.operation, &self.request.scope) {
            (Operation::Create | Operation::Adopt | Operation::Update { .. }, Some(scope)) => {
                scope.blueprint().wanted_names(&row.name)
            }
            // A check keeps the attributes, except for an adopted object, whose attributes are read for the first time.
            (Operation::Check, Some(scope))
                if row.definition.as_ref().is_some_and(|held| held.external_id.is_some()) =>
            {
                scope.blueprint().wanted_names(&row.name)
            }
            _ => Vec::new(),
        };
        let options = &self.actor.options;
        let adopted = self.request.adopted.get(&row.name).cloned();
        let imported = adopted.as_ref().zip(row.definition.as_ref());
        let imported =
            imported.and_then(|(adopted, definition)| ImportedObject::of(adopted, entry, definition, &facts));
        Ok(Job {
            row: id,
            name: row.name.clone(),
            planned: self.planned_object(row, &running.operation),
            retain: running.operation == Operation::Delete
                && (row.is_retained() || self.keeps_object_of(row) || self.is_of_another(row)),
            adopted,
            imported,
            holders: self.holders(row, kind, &entry.driver, &facts.properties),
            running,
            memory,
            facts,
            driver: Arc::clone(&entry.driver),
            backends: self.actor.backends.clone(),
            software: self.actor.backends.software(&self.root.project),
            root: Arc::clone(&self.root),
            wanted,
            creating: Arc::clone(&self.actor.creating),
            limits: RetryLimits { actions: options.action_retries, calls: options.call_retries },
            call_limit: options.call_limit,
            list_delay: options.list_delay,
        })
    }

    /// The object to read before the first call of an operation, if the plan of the request has seen it: that of the row, or
    /// the one that the row replaces.
    fn planned_object(&self, row: &Resource, operation: &Operation) -> Option<PlannedObject> {
        let owner = match operation {
            Operation::Update { .. } | Operation::Delete => row,
            Operation::Create => self.model.row(row.replaces?)?,
            _ => return None,
        };
        let seen = self.request.planned_objects.before(row.id, owner.id)?;
        let kind = self.kind_of(&owner.name, &owner.implementation)?;
        let entry = kind.entry().filter(|entry| entry.driver.has_object())?;
        Some(PlannedObject {
            plan: self.stack.details.planned.as_ref()?.plan,
            seen,
            facts: facts(owner, &kind, &stack_facts(&self.stack)),
            kind: Arc::clone(entry),
            is_deleted: *operation == Operation::Delete,
        })
    }

    /// Whether the object of a row is kept because the stack is abandoned, or its adopt is rolled back.
    fn keeps_object_of(&self, row: &Resource) -> bool {
        let details = &self.stack.details;
        let has = |key: &str| row.data.contains_key(key);
        let made = !has(ADOPTED) && (row.physical_id.is_some() || has(LOST_CREATE));
        details.keep_objects && !(details.only_adopted && made)
    }

    /// Whether the object of a row now belongs to another row, such as a key pair that replaced one with the same name.
    fn is_of_another(&self, row: &Resource) -> bool {
        row.physical_id.is_some()
            && self.model.rows_of(&row.name).any(|other| is_rival(row, other) && other.physical_id == row.physical_id)
    }

    /// The other objects of a resource that hold what it needs. Retained objects are not touched.
    fn holders(&self, row: &Resource, kind: &Kind, driver: &Arc<dyn Driver>, wanted: &Map) -> Vec<Facts> {
        let may_hold = |other: &&Resource| {
            is_rival(row, other)
                && other.physical_id.is_some()
                && !other.is_retained()
                && !driver.collisions(other.properties(), wanted).is_empty()
        };
        let stack = stack_facts(&self.stack);
        self.model.rows_of(&row.name).filter(may_hold).map(|other| facts(other, kind, &stack)).collect()
    }

    /// What the driver stores when an operation is cancelled.
    fn when_cancelled(&self, id: ResourceId) -> Option<SoftwareChange> {
        let row = self.model.row(id)?;
        let kind = self.kind_of(&row.name, &row.implementation)?;
        kind.entry()?.driver.cancelled(&facts(row, &kind, &stack_facts(&self.stack)))
    }

    /// Interrupts an operation as soon as that is safe.
    pub(super) fn interrupt(&mut self, id: ResourceId) {
        match self.slots.interrupt(id) {
            Interrupted::AtOnce => {
                let Some(running) = self.model.row(id).and_then(|row| row.running()) else { return };
                let event = self.failed(id, &abort_failure(running, &self.slots.memory(id)));
                self.writes.software(self.when_cancelled(id).into_iter().collect());
                self.slots.answered(id, None);
                self.events.push_back(event);
            }
            Interrupted::Nested(child) => self.writes.cancel(child),
            Interrupted::Later => {}
        }
    }
}

/// Whether two rows of one name represent objects of the same type.
fn is_rival(row: &Resource, other: &Resource) -> bool {
    row.id != other.id && row.implementation == other.implementation
}

/// The end of an operation without further results.
pub(super) fn finished(row: ResourceId, outcome: Outcome) -> Event {
    Event::Finished { row, physical_id: None, data: Map::new(), attributes: None, outcome }
}

/// The time at which a repetition is due.
pub(super) fn later(now: Duration, after: Duration) -> Option<Duration> {
    (!after.is_zero()).then(|| now + after)
}
