//! The planner: one stack's rows, and the traversal that brings them to what they should be.

use std::collections::{BTreeMap, BTreeSet};

use kiln_resource::{Action, Failure, Operation, Resource, ResourceId, State, Status};
use kiln_value::{Map, Value};

use crate::event::{Command, Event, Goal, Note, Outcome, Target};
use crate::graph::Index;
use crate::running::{Phase, Running};
use crate::stack_scope::metadata;
use crate::traversal::{Node, Traversal};
use crate::{Blame, Decision};

/// The default reason of a resource's state.
pub(crate) const STATE_CHANGED: &str = "state changed";

/// What is known of one stack, and what is being done about it.
#[derive(Clone, Debug)]
pub struct Model {
    rows: BTreeMap<ResourceId, Resource>,
    /// The row that stands for each name: the one that `get_resource` means.
    current: BTreeMap<String, ResourceId>,
    /// Operations under way, with the node that waits for each; `None`: begun by an earlier traversal.
    busy: BTreeMap<ResourceId, Option<Index>>,
    /// Nodes that wait for an earlier traversal's operation on their row.
    parked: BTreeMap<ResourceId, Vec<Index>>,
    /// Verdicts asked for, by serial.
    asked: BTreeMap<u64, Index>,
    serial: u64,
    request: CurrentRequest,
    traversal: Traversal,
    wanted: BTreeMap<String, Vec<String>>,
    /// What a check found; it goes on to the last resource.
    found: Vec<String>,
    stage: Stage,
}

#[derive(Clone, Debug)]
struct CurrentRequest {
    action: Action,
    goal: Goal,
    generation: i64,
    rollback: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    /// Nothing is asked for.
    Idle,
    /// Nodes are being done.
    Going,
    /// Failed: only what is under way is awaited.
    Failing(String),
}

impl Model {
    /// A stack with these rows and nothing to do yet.
    pub fn new(rows: impl IntoIterator<Item = Resource>) -> Self {
        let request = CurrentRequest { action: Action::Init, goal: Goal::Converge, generation: 0, rollback: false };
        let mut model = Self {
            rows: rows.into_iter().map(|row| (row.id, row)).collect(),
            current: BTreeMap::new(),
            busy: BTreeMap::new(),
            parked: BTreeMap::new(),
            asked: BTreeMap::new(),
            serial: 0,
            request,
            traversal: Traversal::default(),
            wanted: BTreeMap::new(),
            found: Vec::new(),
            stage: Stage::Idle,
        };
        model.choose_current();
        model
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &Resource> {
        self.rows.values()
    }

    /// A row.
    pub fn row(&self, id: ResourceId) -> Option<&Resource> {
        self.rows.get(&id)
    }

    /// The row that stands for a name.
    pub fn current(&self, name: &str) -> Option<&Resource> {
        self.rows.get(self.current.get(name)?)
    }

    /// The row that users are shown for a name: of several the one of the newest request, in a rollback of the oldest.
    pub fn shown(&self, back: bool) -> BTreeMap<&str, &Resource> {
        let mut shown: BTreeMap<&str, &Resource> = BTreeMap::new();
        let age = |row: &Resource| (if back { -row.generation } else { row.generation }, row.created, row.id);
        for row in self.rows.values() {
            let newer = shown.get(row.name.as_str()).is_none_or(|other| age(row) > age(other));
            if newer {
                shown.insert(&row.name, row);
            }
        }
        shown
    }

    /// Notes on a row that it belongs to a stack and is being changed now.
    pub fn stamp(&mut self, id: ResourceId, stack: kiln_resource::StackId, now: jiff::Timestamp) {
        if let Some(row) = self.rows.get_mut(&id) {
            row.stack = stack;
            row.updated = now;
            if row.created == jiff::Timestamp::UNIX_EPOCH {
                row.created = now;
            }
        }
    }

    /// Notes the nested stack that a row stands for.
    pub fn set_child(&mut self, id: ResourceId, child: kiln_resource::StackId) {
        if let Some(row) = self.rows.get_mut(&id) {
            row.child = Some(child);
        }
    }

    /// Takes an event in and says what to do, in order.
    pub fn decide(&mut self, event: Event) -> Vec<Command> {
        let mut out = Vec::new();
        match event {
            Event::Begin { action, goal, generation, targets, rollback } => {
                self.begin(CurrentRequest { action, goal, generation, rollback }, targets, &mut out);
            }
            Event::Judged { serial, name, verdict, fresh, kind } => {
                if let Some(node) = self.asked.remove(&serial) {
                    self.judged(node, &name, verdict, fresh, kind, &mut out);
                }
            }
            Event::Stepped { row, physical_id, data, phase, attempt, token } => {
                self.learn(row, physical_id, data);
                if let Some(row) = self.rows.get_mut(&row)
                    && let Some(running) = Running::from_value(&row.step)
                {
                    row.step = Running { phase, token, attempt, ..running }.to_value();
                    out.extend([Command::Save(row.id), Command::Start(row.id)]);
                }
            }
            Event::Finished { row, physical_id, data, attributes, outcome } => {
                self.learn(row, physical_id, data);
                if let (Some(row), Some(attributes)) = (self.rows.get_mut(&row), attributes) {
                    row.attributes = attributes;
                }
                self.finished(row, outcome, &mut out);
            }
            Event::TimedOut => {
                out.extend(self.busy.keys().copied().map(Command::Interrupt));
                self.fail("Timed out".to_owned(), &mut out);
            }
        }
        self.end_if_done(&mut out);
        out
    }

    fn begin(&mut self, request: CurrentRequest, targets: Vec<Target>, out: &mut Vec<Command>) {
        self.request = request;
        self.stage = Stage::Going;
        self.asked.clear();
        self.parked.clear();
        self.found.clear();
        for node in self.busy.values_mut() {
            *node = None;
        }
        self.choose_current();
        self.traversal = Traversal::new(self.request.goal, &targets, &self.rows, &self.current);
        for target in &targets {
            if !self.current.contains_key(&target.name) {
                self.insert(&target.name, None, target.fresh, target.kind.clone(), out);
                out.push(Command::Save(target.fresh));
            }
        }
        self.wanted = targets.into_iter().map(|t| (t.name, t.requires)).collect();
        // What an engine that is gone had begun goes on where it was.
        for row in self.rows.values() {
            if Running::from_value(&row.step).is_some() && !self.busy.contains_key(&row.id) {
                self.busy.insert(row.id, None);
                out.push(Command::Resume(row.id));
            }
        }
        if self.request.action == Action::Delete {
            out.extend(self.busy.keys().copied().map(Command::Interrupt));
        }
        self.visit_all(self.traversal.graph.ready(), out);
    }

    /// Among rows of one name, the one that counts: failed, replaced and half deleted ones last; then, in a
    /// rollback the oldest, else the newest (Heat scores alike, semantics.md §2).
    fn choose_current(&mut self) {
        let back = self.request.action == Action::Rollback;
        let score = |row: &Resource| {
            let failed = if row.state.failed() { -30 } else { 0 };
            let deleting = if row.state.action == Action::Delete { -50 } else { 0 };
            let replaced = if row.replaced_by.is_some() { -1 } else { 0 };
            let age = if back { -row.generation } else { row.generation };
            (failed + deleting + if back { 0 } else { replaced }, age, row.updated, row.id)
        };
        let mut current: BTreeMap<String, ResourceId> = BTreeMap::new();
        for row in self.rows.values() {
            let better = match current.get(&row.name).and_then(|id| self.rows.get(id)) {
                Some(other) => score(row) > score(other),
                None => true,
            };
            if better {
                current.insert(row.name.clone(), row.id);
            }
        }
        self.current = current;
    }

    fn visit_all(&mut self, nodes: Vec<Index>, out: &mut Vec<Command>) {
        // A stack, not recursion: a chain of rows that stay is as long as the template.
        let mut queue = nodes;
        queue.reverse();
        while let Some(index) = queue.pop() {
            if self.stage != Stage::Going {
                return;
            }
            if self.visit(index, out) {
                queue.extend(self.traversal.graph.done(index).into_iter().rev());
            }
        }
    }

    /// Looks at a node that waits for nothing; true if it is done at once.
    fn visit(&mut self, index: Index, out: &mut Vec<Command>) -> bool {
        let Some(node) = self.traversal.nodes.get(index).cloned() else { return true };
        let row = match &node {
            Node::Update(name) => self.current.get(name).copied(),
            Node::Cleanup(id) | Node::Act(id) => Some(*id),
        };
        if let Some(id) = row
            && self.busy.contains_key(&id)
        {
            self.parked.entry(id).or_default().push(index);
            return false;
        }
        match node {
            Node::Update(name) => {
                self.serial += 1;
                self.asked.insert(self.serial, index);
                out.push(Command::Judge { serial: self.serial, name, row });
                false
            }
            Node::Cleanup(id) => self.clean_up(index, id, out),
            Node::Act(id) => self.act(index, id, out),
        }
    }

    fn clean_up(&mut self, index: Index, id: ResourceId, out: &mut Vec<Command>) -> bool {
        let Some(row) = self.rows.get(&id) else { return true };
        let stays = self.wanted.contains_key(&row.name) && self.current.get(&row.name) == Some(&id);
        if stays {
            return true;
        }
        if row.state == State::INIT {
            self.forget(id, out);
            return true;
        }
        let definition = row.definition.clone();
        self.start(id, index, Operation::Delete, definition, out);
        false
    }

    fn act(&mut self, index: Index, id: ResourceId, out: &mut Vec<Command>) -> bool {
        let Some(row) = self.rows.get(&id) else { return true };
        let (operation, refused) = match self.request.goal {
            Goal::Converge | Goal::Check => (Operation::Check, false),
            Goal::Suspend => {
                let fit = row.state.action != Action::Delete
                    && (row.state.status == Status::Complete || row.state.action == Action::Suspend);
                (Operation::Suspend, !fit)
            }
            Goal::Resume => {
                let fit = row.state.is_complete(Action::Suspend) || row.state.action == Action::Resume;
                (Operation::Resume, !fit)
            }
        };
        if refused {
            let (action, status) = (row.state.action, row.state.status);
            let verb = if self.request.goal == Goal::Suspend { "suspend" } else { "resume" };
            let text = format!("State ('{action}', '{status}') invalid for {verb}");
            let failure = Failure::other("Error", text);
            let blame = Blame::of(&row.name, &failure);
            self.fail(blame.stack_reason(operation.action()), out);
            return false;
        }
        let definition = row.definition.clone();
        self.start(id, index, operation, definition, out);
        false
    }

    fn judged(
        &mut self,
        node: Index,
        name: &str,
        verdict: Decision,
        fresh: ResourceId,
        kind: (String, String),
        out: &mut Vec<Command>,
    ) {
        if self.stage != Stage::Going {
            return;
        }
        let row = self.current.get(name).copied();
        match (verdict, row) {
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
                self.start(id, node, Operation::Update { before, changed }, definition, out);
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
                let failure = Failure::other("Error", "the resource is not there any more");
                self.fail(Blame::of(name, &failure).stack_reason(self.request.action), out);
            }
        }
    }

    /// Whether a row only waits for its turn.
    fn is_unmade(&self, id: ResourceId) -> bool {
        self.rows.get(&id).is_some_and(|row| row.state == State::INIT)
    }

    /// Nothing to do, but what was stored may have to follow.
    fn keep(&mut self, id: ResourceId, definition: Option<Value>, out: &mut Vec<Command>) {
        let requires = self.required_rows(id);
        let Some(row) = self.rows.get_mut(&id) else { return };
        let mut changed = false;
        if let Some(definition) = definition {
            row.metadata = metadata(&definition);
            row.definition = definition;
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

    /// A new row, in the place of an old one if there is one.
    #[expect(clippy::too_many_arguments, reason = "the parts of a row, used once")]
    fn make(
        &mut self,
        node: Index,
        name: &str,
        old: Option<ResourceId>,
        id: ResourceId,
        kind: (String, String),
        definition: Value,
        out: &mut Vec<Command>,
    ) {
        self.insert(name, old, id, kind, out);
        self.create(id, node, definition, out);
    }

    fn insert(
        &mut self,
        name: &str,
        old: Option<ResourceId>,
        id: ResourceId,
        (resource_type, implementation): (String, String),
        out: &mut Vec<Command>,
    ) {
        // Stack and times are the engine's to fill in.
        let (stack, created) = (kiln_resource::StackId(uuid::Uuid::nil()), jiff::Timestamp::UNIX_EPOCH);
        let mut row = Resource::new(stack, id, name, &resource_type, created);
        row.implementation = implementation;
        row.replaces = old;
        row.generation = self.request.generation;
        self.rows.insert(id, row);
        self.current.insert(name.to_owned(), id);
        if let Some(old) = old.and_then(|old| self.rows.get_mut(&old)) {
            old.replaced_by = Some(id);
            old.step = Value::Null;
            out.push(Command::Save(old.id));
        }
    }

    /// The definition of a resource cannot be resolved: a new one fails before anything is made.
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
        let (id, action) = match row {
            Some(id) if self.is_unmade(id) => (id, Action::Create),
            Some(id) => (id, Action::Update),
            None => {
                self.insert(name, None, fresh, kind, out);
                (fresh, Action::Create)
            }
        };
        self.set_state(id, State::new(action, Status::InProgress), STATE_CHANGED.to_owned(), out);
        self.set_state(id, State::new(action, Status::Failed), blame.to_string(), out);
        self.fail(blame.stack_reason(action), out);
    }

    /// Begins to make what a row stands for: an existing object is taken over as it is, and looked at.
    fn create(&mut self, id: ResourceId, node: Index, definition: Value, out: &mut Vec<Command>) {
        let Some(external) = definition.str_at("external_id").map(str::to_owned) else {
            return self.start(id, node, Operation::Create, definition, out);
        };
        let Some(row) = self.rows.get_mut(&id) else { return };
        row.metadata = metadata(&definition);
        row.definition = definition;
        row.generation = self.request.generation;
        let adopt = |status| State::new(Action::Adopt, status);
        self.set_state(id, adopt(Status::InProgress), STATE_CHANGED.to_owned(), out);
        self.learn(id, Some(external), Map::new());
        self.set_state(id, adopt(Status::Complete), STATE_CHANGED.to_owned(), out);
        self.start(id, node, Operation::Check, Value::Null, out);
    }

    /// Begins an operation on a row.
    fn start(&mut self, id: ResourceId, node: Index, operation: Operation, definition: Value, out: &mut Vec<Command>) {
        let action = operation.action();
        let requires = match operation {
            Operation::Create | Operation::Update { .. } => Some(self.required_rows(id)),
            _ => None,
        };
        let Some(row) = self.rows.get_mut(&id) else { return };
        if operation == Operation::Create {
            row.metadata = metadata(&definition);
            row.definition.clone_from(&definition);
        }
        if let Some(requires) = requires {
            row.requires = requires;
            row.generation = self.request.generation;
        }
        let token = id.to_string();
        // What is made has its definition in the row already.
        let definition = if matches!(operation, Operation::Update { .. }) { definition } else { Value::Null };
        row.step = Running { operation, definition, phase: Phase::Intent, token, attempt: 0 }.to_value();
        self.busy.insert(id, Some(node));
        self.set_state(id, State::new(action, Status::InProgress), STATE_CHANGED.to_owned(), out);
        out.push(Command::Start(id));
    }

    fn required_rows(&self, id: ResourceId) -> Vec<ResourceId> {
        let names = self.rows.get(&id).and_then(|row| self.wanted.get(&row.name));
        let rows: BTreeSet<ResourceId> =
            names.into_iter().flatten().filter_map(|name| self.current.get(name)).copied().collect();
        rows.into_iter().collect()
    }

    fn learn(&mut self, id: ResourceId, physical_id: Option<String>, data: Map) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        if physical_id.is_some() {
            // An empty one says that there is none any more.
            row.physical_id = physical_id.filter(|id| !id.is_empty());
        }
        for (key, value) in data {
            if value.is_null() {
                row.data.shift_remove(&key);
            } else {
                row.data.insert(key, value);
            }
        }
    }

    fn finished(&mut self, id: ResourceId, outcome: Outcome, out: &mut Vec<Command>) {
        let Some(node) = self.busy.remove(&id) else { return };
        let Some(row) = self.rows.get_mut(&id) else { return };
        let running = Running::from_value(&row.step);
        row.step = Value::Null;
        let operation = running.as_ref().map_or(Operation::Check, |running| running.operation.clone());
        let action = operation.action();
        let mut next = self.parked.remove(&id).unwrap_or_default();
        match outcome {
            Outcome::Done(text) => {
                if let (Operation::Update { .. }, Some(running)) = (&operation, running) {
                    row.metadata = metadata(&running.definition);
                    row.definition = running.definition;
                }
                let reason = text.unwrap_or_else(|| STATE_CHANGED.to_owned());
                self.set_state(id, State::new(action, Status::Complete), reason, out);
                if operation == Operation::Delete {
                    self.forget(id, out);
                }
                if let Some(node) = node {
                    next.extend(self.traversal.graph.done(node));
                }
            }
            Outcome::Replace(text) => {
                self.set_state(id, State::new(action, Status::Complete), text, out);
                // The node judges anew; the row asks for its replacement by being marked so.
                if let Some(row) = self.rows.get_mut(&id) {
                    row.step = kiln_value::value!({"replace": true});
                }
                next.extend(node);
            }
            Outcome::Failed(blame) => {
                self.set_state(id, State::new(action, Status::Failed), blame.to_string(), out);
                // A failure of what an earlier request began is not this request's: its node will judge the row.
                match node {
                    Some(node) if self.request.goal == Goal::Check => {
                        self.found.push(format!("{}: {blame}", blame.path.concat()));
                        next.extend(self.traversal.graph.done(node));
                    }
                    Some(_) => self.fail(blame.stack_reason(action), out),
                    None => {}
                }
            }
        }
        self.visit_all(next, out);
    }

    fn set_state(&mut self, id: ResourceId, state: State, reason: String, out: &mut Vec<Command>) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        row.state = state;
        row.reason.clone_from(&reason);
        out.push(Command::Save(id));
        out.push(Command::Note(Box::new(Note::of(row, state, reason))));
    }

    fn forget(&mut self, id: ResourceId, out: &mut Vec<Command>) {
        let Some(row) = self.rows.remove(&id) else { return };
        if self.current.get(&row.name) == Some(&id) {
            self.current.remove(&row.name);
        }
        out.push(Command::Remove(id));
    }

    fn fail(&mut self, reason: String, out: &mut Vec<Command>) {
        if self.stage != Stage::Going {
            return;
        }
        let answers = matches!(self.request.action, Action::Create | Action::Update | Action::Adopt | Action::Restore);
        if self.request.rollback && answers {
            self.stage = Stage::Idle;
            out.push(Command::RollBack { reason });
        } else {
            self.stage = Stage::Failing(reason);
        }
    }

    fn end_if_done(&mut self, out: &mut Vec<Command>) {
        if !self.busy.is_empty() {
            return;
        }
        let action = self.request.action;
        let (status, reason) = match &self.stage {
            Stage::Going if self.traversal.graph.is_done() && !self.found.is_empty() => {
                (Status::Failed, format!("Resource {action} failed: {}", self.found.join("; ")))
            }
            Stage::Going if self.traversal.graph.is_done() => {
                (Status::Complete, format!("Stack {action} completed successfully"))
            }
            Stage::Going if self.asked.is_empty() => {
                (Status::Failed, "Internal error: resources wait for each other".to_owned())
            }
            Stage::Failing(reason) => (Status::Failed, reason.clone()),
            Stage::Idle | Stage::Going => return,
        };
        self.stage = Stage::Idle;
        out.push(Command::End { state: State::new(action, status), reason });
    }
}
