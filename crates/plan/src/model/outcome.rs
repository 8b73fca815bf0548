//! The effects of decisions and of finished operations.

use std::collections::BTreeSet;
use std::sync::Arc;

use kiln_resource::{
    Action, Failure, Operation, OperationState, Phase, Resource, ResourceId, Running, State, Status, StoredDefinition,
};
use kiln_value::{Class, Map, Value};

use super::{Model, SAVED, STATE_CHANGED, Stage};
use crate::event::{Command, Goal, Note, Outcome};
use crate::graph::Index;
use crate::guards::note_unfinished;
use crate::{Blame, Decision};

impl Model {
    pub(super) fn decided(
        &mut self,
        node: Index,
        name: &str,
        decision: Decision,
        fresh: ResourceId,
        kind: (String, String),
        out: &mut Vec<Command>,
    ) {
        if self.stage != Stage::Going {
            return;
        }
        let row = self.current.get(name).copied();
        // Only an update takes over a running operation; all other decisions are made after it has ended.
        if let Some(id) = row
            && self.busy.contains_key(&id)
            && !matches!(decision, Decision::Update { .. })
        {
            self.park(node, id, matches!(decision, Decision::Replace { .. }), out);
            return;
        }
        if self.may_not_follow(name, row, &kind.0, &decision, out) {
            return;
        }
        if let (Decision::Update { .. } | Decision::Keep { .. }, Some(row)) =
            (&decision, row.and_then(|id| self.rows.get_mut(&id)))
            && (row.implementation == kind.1 || row.definition.as_ref().is_none_or(|held| held.external_id.is_none()))
        {
            // A new name of the type is shown immediately, also that of a type which this one becomes without a
            // replacement; the definition, which also differs, is stored with it.
            (row.resource_type, row.implementation) = kind.clone();
        }
        match (decision, row) {
            (Decision::Create { definition }, Some(id)) if self.is_unmade(id) => {
                if let Some(row) = self.rows.get_mut(&id) {
                    (row.resource_type, row.implementation) = kind;
                }
                self.create(id, node, definition, out);
            }
            (Decision::Create { definition }, old) => self.make(node, name, old, fresh, kind, definition, out),
            (Decision::Replace { definition, announce, .. }, old) => {
                if let (Some(text), Some(old)) = (announce, old) {
                    let update = |status| State::new(Action::Update, status);
                    self.set_state(old, update(Status::InProgress), STATE_CHANGED.to_owned(), out);
                    self.set_state(old, update(Status::Complete), text, out);
                }
                self.make(node, name, old, fresh, kind, definition, out);
            }
            (Decision::Update { definition, before, changed }, Some(id)) => {
                self.start(id, node, Operation::Update { before, changed }, Some(definition), out);
            }
            (Decision::Keep { definition }, Some(id)) => {
                self.keep(id, definition, out);
                let next = self.traversal.graph.done(node);
                self.visit_all(next, out);
            }
            (Decision::Refuse { failure }, row) => self.refuse(name, row, fresh, kind, &failure, out),
            (Decision::Restrict { failure }, Some(id)) => {
                let blame = Blame::of(name, &failure);
                if let Some(row) = self.rows.get(&id) {
                    let state = State::new(Action::Update, Status::Failed);
                    let reason = failure.message.clone();
                    out.push(Command::Note(Box::new(Note::of(row, state, reason))));
                }
                self.fail(blame.stack_reason(Action::Update), out);
            }
            (Decision::Update { .. } | Decision::Keep { .. } | Decision::Restrict { .. }, None) => {
                let failure = Failure::other(Class::Error, "the resource no longer exists");
                self.fail(Blame::of(name, &failure).stack_reason(self.request.action), out);
            }
        }
    }

    /// Nothing to do, but the stored data may have to be updated.
    fn keep(&mut self, id: ResourceId, definition: Option<Arc<StoredDefinition>>, out: &mut Vec<Command>) {
        let requires = self.required_rows(id);
        let Some(row) = self.rows.get_mut(&id) else { return };
        // The decision has judged what failed before.
        let mut changed = matches!(row.operation, OperationState::HalfMade(_) | OperationState::MustReplace);
        if changed {
            row.operation = OperationState::Idle;
        }
        if let Some(definition) = definition {
            renew_metadata(row, &definition);
            row.definition = Some(definition);
            changed = true;
        }
        if row.requires != requires {
            row.requires = requires;
            changed = true;
        }
        if self.request.action == Action::Rollback && (row.replaced_by.is_some() || row.replaces.is_some()) {
            (row.replaced_by, row.replaces) = (None, None);
            changed = true;
        }
        if row.state.failed() {
            let state = State::new(row.state.action, Status::Complete);
            let reason = "Update status to COMPLETE for FAILED resource neither update nor replace.".to_owned();
            self.set_state(id, state, reason, out);
        } else if changed {
            out.push(Command::Save(id));
        }
    }

    /// Creates a new row, which may replace an old one.
    #[expect(clippy::too_many_arguments, reason = "the parts of a row, used once")]
    fn make(
        &mut self,
        node: Index,
        name: &str,
        old: Option<ResourceId>,
        id: ResourceId,
        kind: (String, String),
        definition: Arc<StoredDefinition>,
        out: &mut Vec<Command>,
    ) {
        self.insert(name, old, id, kind, out);
        self.create(id, node, definition, out);
    }

    /// The definition of a resource cannot be resolved: a new resource fails before anything is created.
    fn refuse(
        &mut self,
        name: &str,
        row: Option<ResourceId>,
        fresh: ResourceId,
        kind: (String, String),
        failure: &Failure,
        out: &mut Vec<Command>,
    ) {
        let blame = Blame::of(name, failure);
        let first = if self.request.adopts(name) { Action::Adopt } else { Action::Create };
        let (id, action) = match row {
            Some(id) if self.is_unmade(id) => (id, first),
            Some(id) => (id, Action::Update),
            None => {
                self.insert(name, None, fresh, kind, out);
                (fresh, first)
            }
        };
        self.set_state(id, State::new(action, Status::InProgress), STATE_CHANGED.to_owned(), out);
        self.set_state(id, State::new(action, Status::Failed), blame.to_string(), out);
        self.fail(blame.stack_reason(action), out);
    }

    /// Starts to create the resource of a row; an existing object is adopted and checked.
    fn create(&mut self, id: ResourceId, node: Index, definition: Arc<StoredDefinition>, out: &mut Vec<Command>) {
        let external = definition.external_id.clone();
        let adopts = self.adopts(id);
        let Some(row) = self.rows.get_mut(&id) else { return };
        let operation = if adopts { Operation::Adopt } else { Operation::Create };
        row.metadata = match operation {
            Operation::Adopt if external.is_none() => {
                self.request.adopted.get(&row.name).cloned().unwrap_or_else(|| Map::new().into())
            }
            _ => Value::Map(definition.metadata.clone()),
        };
        row.definition = Some(definition);
        let Some(external) = external else { return self.start(id, node, operation, None, out) };
        row.generation = self.request.generation;
        let adopt = |status| State::new(Action::Adopt, status);
        self.set_state(id, adopt(Status::InProgress), STATE_CHANGED.to_owned(), out);
        self.learn(id, Some(external), Map::new());
        self.set_state(id, adopt(Status::Complete), STATE_CHANGED.to_owned(), out);
        self.start(id, node, Operation::Check, None, out);
    }

    /// Whether the object of a row without an object exists already. One that replaces another gets a new object: the other one
    /// has the adopted object, and deletes it.
    fn adopts(&self, id: ResourceId) -> bool {
        let Some(row) = self.rows.get(&id) else { return false };
        let has_object = |replaced: &Resource| replaced.physical_id.is_some() || replaced.child.is_some();
        let is_free = row.replaces.is_none_or(|replaced| self.rows.get(&replaced).is_some_and(|old| !has_object(old)));
        self.request.adopts(&row.name) && is_free
    }

    /// Starts an operation on a row; `definition` becomes valid when an update is done.
    pub(super) fn start(
        &mut self,
        id: ResourceId,
        node: Index,
        operation: Operation,
        definition: Option<Arc<StoredDefinition>>,
        out: &mut Vec<Command>,
    ) {
        let action = operation.action();
        let requires = match operation {
            Operation::Create | Operation::Adopt | Operation::Update { .. } => Some(self.required_rows(id)),
            _ => None,
        };
        let Some(row) = self.rows.get_mut(&id) else { return };
        let mut next_requires = Vec::new();
        if let Some(requires) = requires {
            if matches!(operation, Operation::Create | Operation::Adopt) {
                row.requires = requires;
            } else {
                // Until the update is done, the object may depend on both the old and the new dependencies.
                let both: BTreeSet<ResourceId> = row.requires.iter().chain(&requires).copied().collect();
                row.requires = both.into_iter().collect();
                next_requires = requires;
            }
            row.generation = self.request.generation;
        }
        note_unfinished(row, &operation);
        // An object can have a snapshot of every request.
        if operation == Operation::Snapshot {
            row.data.insert(SAVED.to_owned(), self.request.generation.into());
        }
        let token = match operation {
            Operation::Snapshot => format!("{id}-{}", self.request.generation),
            _ => id.to_string(),
        };
        let saves = operation == Operation::Delete
            && !row.state.failed()
            && row.physical_id.is_some()
            && row.definition.as_ref().is_some_and(|definition| definition.deletion_policy == "Snapshot");
        let phase = if saves { Phase::Snapshot(Value::Null) } else { Phase::Intent };
        let (attempt, requires) = (0, next_requires);
        let afterwards = afterwards(row, &operation);
        row.operation = Running { operation, definition, phase, token, attempt, requires, afterwards }.into();
        self.busy.insert(id, Some(node));
        self.set_state(id, State::new(action, Status::InProgress), STATE_CHANGED.to_owned(), out);
        out.push(Command::Start(id));
    }

    pub(super) fn finished(&mut self, id: ResourceId, outcome: Outcome, out: &mut Vec<Command>) {
        let Some(node) = self.busy.remove(&id) else { return };
        let again = if node.is_none() { self.ask_again(id) } else { None };
        let Some(row) = self.rows.get_mut(&id) else { return };
        let OperationState::Running(running) = std::mem::take(&mut row.operation) else { return };
        let action = running.operation.action();
        let mut next = self.parked.remove(&id).unwrap_or_default();
        next.extend(again);
        let continued = self.continued.remove(&id);
        let parting = self.parting.remove(&id);
        match outcome {
            Outcome::Done(text) => {
                row.operation = running.afterwards;
                if let (Operation::Update { .. }, Some(definition)) = (running.operation, running.definition) {
                    renew_metadata(row, &definition);
                    row.definition = Some(definition);
                    row.requires = running.requires;
                }
                let reason = text.unwrap_or_else(|| STATE_CHANGED.to_owned());
                self.set_state(id, State::new(action, Status::Complete), reason, out);
                let at = node.or(continued);
                if let (Some(at), Some(hook)) = (at, Self::hook_after(action))
                    && self.stage == Stage::Going
                    && self.hold(id, at, hook, out)
                {
                    next.retain(|parked| *parked != at);
                    return self.visit_all(next, out);
                }
                if action == Action::Delete {
                    self.forget(id, out);
                }
                if let Some(node) = node {
                    next.extend(self.traversal.graph.done(node));
                }
            }
            Outcome::Replace(text) => {
                self.set_state(id, State::new(action, Status::Complete), text, out);
                // The node decides again; the row is marked for replacement.
                if let Some(row) = self.rows.get_mut(&id) {
                    row.operation = OperationState::MustReplace;
                }
                next.extend(node);
            }
            Outcome::Failed(_) if let Some(parting) = parting => {
                self.orphan(id, parting, out);
                if let Some(node) = node.or(continued) {
                    next.extend(self.traversal.graph.done(node));
                }
            }
            Outcome::Failed(blame) => {
                row.operation = running.given_up();
                self.set_state(id, State::new(action, Status::Failed), blame.to_string(), out);
                // A failure of an operation of an earlier request does not fail this request: the node decides about
                // the row.
                match node.or(continued) {
                    Some(node) if self.request.goal() == Goal::Check => {
                        self.found.push(format!("{}: {}", blame.path.concat(), blame.stack_reason(action)));
                        next.extend(self.traversal.graph.done(node));
                    }
                    Some(_) => self.fail(blame.stack_reason(action), out),
                    None => {}
                }
            }
        }
        self.visit_all(next, out);
    }
}

impl Model {
    /// An operation of an earlier request has ended: a pending decision that could have replaced it has not seen its
    /// result. Returns the node that decides again.
    fn ask_again(&mut self, id: ResourceId) -> Option<Index> {
        let row = self.rows.get(&id).filter(|row| row.child.is_some())?;
        let node = self.traversal.update_of(&row.name, id, &self.current)?;
        self.asked.remove(&node).map(|_| node)
    }
}

/// What the row records after the operation. A create that failed is forgotten after a check, which finds the object in
/// order (as in Heat).
fn afterwards(row: &Resource, operation: &Operation) -> OperationState {
    let is_check = *operation == Operation::Check;
    if !is_check && !matches!(operation, Operation::Suspend | Operation::Resume | Operation::Snapshot) {
        return OperationState::Idle;
    }
    match &row.operation {
        noted @ (OperationState::MustReplace | OperationState::HalfMade(_)) => noted.clone(),
        _ if !row.state.failed() || is_check => OperationState::Idle,
        _ => match (row.state.action, &row.definition) {
            (Action::Create | Action::Adopt, Some(definition)) => OperationState::HalfMade(Arc::clone(definition)),
            (Action::Delete, _) => OperationState::MustReplace,
            _ => OperationState::Idle,
        },
    }
}

/// The metadata of a new definition replace those of the row only if the template has changed them: those of the row
/// may contain signals.
fn renew_metadata(row: &mut Resource, definition: &StoredDefinition) {
    if row.definition.as_ref().is_none_or(|held| held.metadata != definition.metadata) {
        row.metadata = Value::Map(definition.metadata.clone());
    }
}
