//! The planner: the rows of a stack, and the traversal that brings them to the desired state.
//!
//! [`Model`] has the rows of one stack and its running request. The engine passes an [`Event`] with its time to
//! [`Model::decide`], and executes the [`Command`]s that it returns. This is the only way to change a model, and commands
//! are the only output: the planner reads no clock, draws no number and calls nothing. New IDs come with the events that
//! need them. So the same events always give the same commands, in an engine, in a preview and in a test.
//!
//! # A request
//!
//! ```text
//!           Begin                 every node done, nothing runs
//!   Idle ──────────▶ Going ──────────────────────────────────────▶ End COMPLETE ──▶ Idle
//!                     │ │
//!                     │ └─ failure, with a rollback ──▶ End FAILED ──▶ Idle ──▶ Begin ROLLBACK, the next request
//!                     │
//!                     └─ failure, timeout, cancel ──▶ Failing ── nothing runs ──▶ End FAILED ──▶ Idle
//! ```
//!
//! A request becomes a graph ([`Traversal`]). It has a node *update* for each resource of the template, and a node *cleanup*
//! for each row. An update follows the updates of what the resource requires. A cleanup follows the update of its own name
//! and the cleanups of the rows that require it. At its turn, an update asks for a decision; a cleanup deletes its row,
//! unless the row is the current one of a name that the template has. Checks, suspends, resumes and snapshots have one
//! node *act* for each current row. A failure begins no node any more, but running operations end. A newer request may begin
//! at any time: it drops the graph of the one before, and its nodes wait for the operations that still run on their rows.
//!
//! # A row
//!
//! ```text
//!                      Decide ──▶ Decided: Create                     Update ──▶ Start UPDATE ─┐
//!   (none) ── Begin ──▶ INIT ──────────────────▶ Start CREATE ──▶ COMPLETE ◀───── done ────────┤
//!                                                    │             │    ▲                      │
//!                                                    │ failed      │    └─ Keep                │ failed
//!                                                    ▼             │                           ▼
//!                                                 FAILED           │ Replace: another row    FAILED, and what
//!                                                    │             │ begins at INIT          was tried is kept
//!                                                    │             ▼                           │
//!                                                    └────────▶ Start DELETE ◀─────────────────┘
//!                                                                  │        │
//!                                                             done │        │ failed
//!                                                                  ▼        ▼
//!                                                               (none)   FAILED: the next cleanup deletes it again
//! ```
//!
//! Each arrow of an operation is stored before it is taken, with its phase, so that another engine continues it there:
//! `Begin` then returns `Resume` in place of `Start`. A hook stops a row before or after an operation. A replaced row and its
//! replacement have the same name; `model/current.rs` says which of them is the current row. The tables in
//! `tests/suite/specification/` show each of these cases: rows, event, commands.
//!
//! | file | content |
//! | --- | --- |
//! | `model.rs` | events, nodes, the end of a request |
//! | `model/outcome.rs` | the effects of decisions and of finished operations |
//! | `model/current.rs` | the current row of each name |
//! | `model/hold.rs` | resources that wait at a hook |
//! | `model/moves.rs` | resources that have another name than before |
//! | `model/permission.rs` | what the plan of the request, or a guard, does not permit |
//! | `model/part.rs` | resources that are forgotten |
//! | `model/rows.rs` | changes of rows |
//! | `model/table.rs` | the rows, shared between copies of a model |

mod current;
mod hold;
mod moves;
mod outcome;
mod part;
mod permission;
mod rows;
pub(crate) mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kiln_resource::{
    Action, Failure, Operation, OperationState, Parting, Resource, ResourceId, StackId, State, Status,
};
use kiln_value::{Class, Value};
use uuid::Uuid;

use self::table::Rows;
use crate::event::{Command, Event, Goal, Note, Request};
use crate::graph::Index;
use crate::traversal::{Node, Traversal};
use crate::{Blame, Guards, Hook};

/// The default reason of a resource's state.
const STATE_CHANGED: &str = "state changed";

/// The entry of a resource's data with the number of the request that last saved it.
const SAVED: &str = "kiln_saved";

/// The number of the request whose snapshot of a row was begun last.
pub fn saved_by(row: &Resource) -> Option<i64> {
    row.data.get(SAVED).and_then(Value::as_i64)
}

/// The state of one stack and of the running request.
#[derive(Clone, Debug)]
pub struct Model {
    rows: Rows,
    /// The rows of each name.
    named: BTreeMap<String, Vec<ResourceId>>,
    /// The current row of each name, which `get_resource` refers to.
    current: BTreeMap<String, ResourceId>,
    /// Running operations with the nodes that wait for them; `None`: started by an earlier traversal.
    busy: BTreeMap<ResourceId, Option<Index>>,
    /// Nodes that wait for an operation of an earlier traversal on their row.
    parked: BTreeMap<ResourceId, Vec<Index>>,
    /// Operations of this request that a previous engine started, with their nodes.
    continued: BTreeMap<ResourceId, Index>,
    /// The nodes that wait for a decision, with the number of the question.
    asked: BTreeMap<Index, u64>,
    /// Rows that wait at a hook, with their nodes.
    held: BTreeMap<ResourceId, (Hook, Index)>,
    /// Rows to forget if their running delete does not succeed.
    parting: BTreeMap<ResourceId, Box<Parting>>,
    serial: u64,
    /// The time of the event that is being decided about.
    now: Timestamp,
    /// The running request; its targets are in `wanted`.
    request: Request,
    traversal: Traversal,
    /// The rows that skipped resources need, as far as they are known: they are not deleted.
    needed: BTreeSet<ResourceId>,
    wanted: BTreeMap<String, Vec<String>>,
    /// Failures of a check, which continues to the last resource.
    found: Vec<String>,
    stage: Stage,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    /// No request.
    Idle,
    /// Nodes are being processed.
    Going,
    /// Failed: only running operations are awaited.
    Failing(String),
}

impl Model {
    /// A stack with these rows, in the order of their creation, and without a request.
    pub fn new(rows: impl IntoIterator<Item = Resource>) -> Self {
        let request = Request::new(StackId(Uuid::nil()), Action::Init, 0);
        let mut model = Self {
            rows: rows.into_iter().collect(),
            named: BTreeMap::new(),
            current: BTreeMap::new(),
            busy: BTreeMap::new(),
            parked: BTreeMap::new(),
            continued: BTreeMap::new(),
            asked: BTreeMap::new(),
            held: BTreeMap::new(),
            parting: BTreeMap::new(),
            serial: 0,
            now: Timestamp::UNIX_EPOCH,
            request,
            traversal: Traversal::default(),
            needed: BTreeSet::new(),
            wanted: BTreeMap::new(),
            found: Vec::new(),
            stage: Stage::Idle,
        };
        for row in model.rows.values() {
            model.named.entry(row.name.clone()).or_default().push(row.id);
        }
        model.choose_current();
        model
    }

    /// The rows of a name: more than one while a replaced row still exists.
    pub fn rows_of(&self, name: &str) -> impl Iterator<Item = &Resource> {
        self.named.get(name).into_iter().flatten().filter_map(|id| self.rows.get(id))
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &Resource> {
        self.rows.values()
    }

    /// A row.
    pub fn row(&self, id: ResourceId) -> Option<&Resource> {
        self.rows.get(&id)
    }

    /// A row, to keep it as it is now.
    pub fn shared(&self, id: ResourceId) -> Option<Arc<Resource>> {
        self.rows.shared(id).map(Arc::clone)
    }

    /// The current row of a name.
    pub fn current(&self, name: &str) -> Option<&Resource> {
        self.rows.get(self.current.get(name)?)
    }

    /// The current row of a name, or else the one that had it before it moved: those who know only the former name still reach
    /// it.
    pub fn current_or_moved(&self, name: &str) -> Option<&Resource> {
        let moved = || {
            let current = self.current.values().filter_map(|id| self.rows.get(id));
            current
                .filter(|row| row.former_names().any(|former| former == name))
                .max_by_key(|row| (row.created, row.id))
        };
        self.current(name).or_else(moved)
    }

    /// The guards that the request heeds.
    pub fn guards(&self) -> Option<&Arc<Guards>> {
        self.request.guards.as_ref()
    }

    /// Whether the reason of a row says what its operation waits for ([`Event::Waits`]).
    pub fn says_wait(&self, id: ResourceId) -> bool {
        self.row(id).is_some_and(|row| row.running().is_some() && row.reason != STATE_CHANGED)
    }

    /// Processes an event of this time and returns the commands in order. Rows that change are changed at this time.
    pub fn decide(&mut self, now: Timestamp, event: Event) -> Vec<Command> {
        self.now = now;
        let mut out = Vec::new();
        match event {
            Event::Begin(request) => self.begin(*request, &mut out),
            Event::Decided { serial, name, decision, fresh, kind, attributes } => {
                if let Some(node) = self.asking(&name, serial) {
                    self.asked.remove(&node);
                    self.know(&name, attributes, &mut out);
                    self.decided(node, &name, decision, fresh, kind, &mut out);
                }
            }
            Event::TakenOver { row, phase } => {
                if let Some(row) = self.rows.get_mut(&row)
                    && let OperationState::Running(running) = &mut row.operation
                {
                    running.phase = phase;
                    out.push(Command::Save(row.id));
                }
            }
            Event::Stepped { row, physical_id, child, data, phase, attempt, token } => {
                self.learn(row, physical_id, data);
                if let Some(row) = self.rows.get_mut(&row)
                    && let OperationState::Running(running) = &mut row.operation
                {
                    row.child = child.or(row.child);
                    (running.phase, running.token, running.attempt) = (phase, token, attempt);
                    // A repeated create says to its end why it was repeated.
                    if attempt == 0 {
                        STATE_CHANGED.clone_into(&mut row.reason);
                    }
                    out.extend([Command::Save(row.id), Command::Start(row.id)]);
                }
            }
            Event::Waits { row, reason } => {
                if let Some(row) = self.rows.get_mut(&row)
                    && let Some(running) = row.running()
                {
                    let kept = if running.attempt == 0 { STATE_CHANGED } else { &row.reason };
                    let reason = reason.unwrap_or_else(|| kept.to_owned());
                    if row.reason != reason {
                        row.reason = reason;
                        out.push(Command::Save(row.id));
                    }
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
            Event::Cancelled { interrupt } => {
                if interrupt {
                    out.extend(self.busy.keys().copied().map(Command::Interrupt));
                }
                self.request.rollback = false;
                self.fail(format!("Stack {} cancelled", self.request.action), &mut out);
            }
            Event::Received { row, physical_id, data, metadata, reason } => {
                let changed = physical_id.is_some() || !data.is_empty() || metadata.is_some();
                self.learn(row, physical_id, data);
                if let Some(row) = self.rows.get_mut(&row) {
                    if let Some(metadata) = metadata {
                        row.metadata = Value::Map(metadata);
                    }
                    out.extend(changed.then_some(Command::Save(row.id)));
                    out.extend(reason.map(|reason| Command::Note(Box::new(Note::of_signal(row, reason)))));
                }
            }
            Event::Refused { row, reason } => {
                let note = self.rows.get(&row).map(|row| Note::of(row, row.state, reason));
                out.extend(note.map(|note| Command::Note(Box::new(note))));
            }
            Event::NestedChanged { row, attributes, metadata } => {
                if let Some(row) = self.rows.get_mut(&row) {
                    row.attributes = attributes.unwrap_or_else(|| std::mem::take(&mut row.attributes));
                    row.metadata = metadata.map_or_else(|| std::mem::take(&mut row.metadata), Value::Map);
                    out.push(Command::Save(row.id));
                }
            }
            Event::Guarded(guards) => self.request.guards = guards,
            Event::HookCleared { name, hook } => self.clear_hook(&name, hook, &mut out),
            Event::Forgotten { row, parting } => self.part_with(row, parting, &mut out),
            Event::Marked { row, healthy, reason } => self.mark(row, healthy, reason, &mut out),
        }
        self.end_if_done(&mut out);
        for command in &out {
            if let Command::Save(id) = command
                && let Some(row) = self.rows.get_mut(id)
            {
                row.updated = now;
            }
        }
        out
    }

    /// Marks a resource healthy or unhealthy. A resource that was never created cannot be marked.
    fn mark(&mut self, id: ResourceId, healthy: bool, reason: String, out: &mut Vec<Command>) {
        let Some(row) = self.rows.get(&id) else { return };
        let failed = row.state == State::new(Action::Check, Status::Failed);
        let status = match healthy {
            true if failed => Status::Complete,
            false if !matches!(row.state.action, Action::Delete | Action::Init) => Status::Failed,
            _ => return,
        };
        self.set_state(id, State::new(Action::Check, status), reason, out);
    }

    fn begin(&mut self, mut request: Request, out: &mut Vec<Command>) {
        let (targets, barred) = (std::mem::take(&mut request.targets), request.barred.take());
        request.rollback &= barred.is_none();
        self.request = request;
        self.stage = Stage::Going;
        self.asked.clear();
        self.parked.clear();
        self.continued.clear();
        self.found.clear();
        self.drop_holds(out);
        for node in self.busy.values_mut() {
            *node = None;
        }
        if barred.is_none() && self.request.goal() == Goal::Converge && self.request.action != Action::Delete {
            self.move_rows(&targets, out);
        }
        self.choose_current();
        self.traversal = Traversal::new(self.request.goal(), &targets, &self.rows, &self.current);
        for target in targets.iter().filter(|_| barred.is_none()) {
            if !self.current.contains_key(&target.name) && !self.request.skipped.contains(&target.name) {
                self.insert(&target.name, None, target.fresh, target.kind.clone(), out);
                out.push(Command::Save(target.fresh));
            }
        }
        self.needed.clear();
        self.wanted = targets.into_iter().map(|t| (t.name, t.requires)).collect();
        // Operations of a previous engine continue in their phase.
        for row in self.rows.values() {
            if row.running().is_some() && !self.busy.contains_key(&row.id) {
                self.busy.insert(row.id, None);
                out.push(Command::Resume(row.id));
                let same = row.generation == self.request.generation
                    && row.running().is_some_and(|running| running.operation != Operation::Delete);
                if same && let Some(node) = self.traversal.update_of(&row.name, row.id, &self.current) {
                    self.continued.insert(row.id, node);
                }
            }
        }
        if let Some(reason) = barred {
            return self.fail(reason, out);
        }
        if self.request.action == Action::Delete {
            out.extend(self.busy.keys().copied().map(Command::Interrupt));
        }
        self.visit_all(self.traversal.graph.ready(), out);
    }

    fn visit_all(&mut self, nodes: Vec<Index>, out: &mut Vec<Command>) {
        // A queue instead of recursion: a chain of unchanged rows can be as long as the template.
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

    /// Processes a node without pending dependencies; returns whether it is already done.
    fn visit(&mut self, index: Index, out: &mut Vec<Command>) -> bool {
        let Some(node) = self.traversal.nodes.get(index).cloned() else { return true };
        if self.is_skipped(&node) {
            // What a row requires is cleaned up after it.
            if let Node::Cleanup(id) = &node {
                self.needed.extend(self.rows.get(id).into_iter().flat_map(|row| &row.requires));
            }
            return true;
        }
        let row = match &node {
            Node::Update(name) => self.current.get(name).copied(),
            Node::Cleanup(id) | Node::Act(id) => Some(*id),
        };
        if let Some(id) = row
            && self.busy.contains_key(&id)
            && !self.may_supersede(&node, id)
        {
            let is_unwanted = matches!(node, Node::Cleanup(_)) && !self.stays(id);
            self.park(index, id, is_unwanted, out);
            return false;
        }
        if let Some(row) = row.and_then(|id| self.rows.get(&id))
            && matches!(row.operation, OperationState::Unknown(_))
        {
            let text = "this operation was started by another version of Kiln and is unknown to this version; \
                        run the engines of that version to finish it";
            let reason =
                Blame::of(&row.name, &Failure::other(Class::NotSupported, text)).stack_reason(self.request.action);
            self.fail(reason, out);
            return false;
        }
        if let Some(id) = row
            && self.still_held(id, index)
        {
            return false;
        }
        match node {
            Node::Update(name) => {
                if let Some(id) = row {
                    let hook = if self.is_unmade(id) { Hook::PreCreate } else { Hook::PreUpdate };
                    // A previous engine has already decided about the row.
                    let is_decided = hook == Hook::PreUpdate
                        && self.rows.get(&id).is_some_and(|row| row.generation == self.request.generation);
                    if !is_decided && self.hold(id, index, hook, out) {
                        return false;
                    }
                }
                self.serial += 1;
                self.asked.insert(index, self.serial);
                out.push(Command::Decide { serial: self.serial, name, row });
                false
            }
            Node::Cleanup(id) => self.clean_up(index, id, out),
            Node::Act(id) => self.act(index, id, out),
        }
    }

    /// Whether nothing is done at a node, because the request skips its resource, or would delete what such a resource needs. An
    /// operation of an earlier request is awaited.
    fn is_skipped(&self, node: &Node) -> bool {
        let (name, row) = match node {
            Node::Cleanup(id) if self.needed.contains(id) => return !self.busy.contains_key(id),
            Node::Update(name) => (name, self.current.get(name)),
            Node::Cleanup(id) | Node::Act(id) => match self.rows.get(id) {
                Some(row) => (&row.name, Some(id)),
                None => return false,
            },
        };
        self.request.skipped.contains(name) && row.is_none_or(|row| !self.busy.contains_key(row))
    }

    /// Whether the decision about a name with this number is still awaited.
    pub fn asks(&self, name: &str, serial: u64) -> bool {
        self.asking(name, serial).is_some()
    }

    /// The node that waits for a decision.
    fn asking(&self, name: &str, serial: u64) -> Option<Index> {
        self.traversal.update(name).filter(|node| self.asked.get(node) == Some(&serial))
    }

    /// Whether the update of a nested stack by an earlier request can be superseded: the nested stack gets the new
    /// request immediately, instead of first completing the old one.
    fn may_supersede(&self, node: &Node, id: ResourceId) -> bool {
        let operation = self.rows.get(&id).and_then(Resource::running);
        matches!(node, Node::Update(_))
            && self.is_nested_of_earlier_request(id)
            && !self.continued.contains_key(&id)
            && matches!(operation.map(|running| &running.operation), Some(Operation::Update { .. }))
    }

    /// Lets a node wait for the end of the operation on its row. The operation of an earlier request on a nested stack
    /// is interrupted if its result is unwanted: it would be deleted anyway.
    fn park(&mut self, node: Index, id: ResourceId, is_unwanted: bool, out: &mut Vec<Command>) {
        if is_unwanted && self.is_nested_of_earlier_request(id) {
            out.push(Command::Interrupt(id));
        }
        self.parked.entry(id).or_default().push(node);
    }

    /// Whether a nested stack is busy with an operation of an earlier request.
    fn is_nested_of_earlier_request(&self, id: ResourceId) -> bool {
        self.busy.get(&id) == Some(&None) && self.rows.get(&id).is_some_and(|row| row.child.is_some())
    }

    /// Whether a row is the wanted one of its name.
    fn stays(&self, id: ResourceId) -> bool {
        let row = self.rows.get(&id);
        row.is_some_and(|row| self.wanted.contains_key(&row.name) && self.current.get(&row.name) == Some(&id))
    }

    fn clean_up(&mut self, index: Index, id: ResourceId, out: &mut Vec<Command>) -> bool {
        let Some(row) = self.rows.get(&id) else { return true };
        if self.stays(id) {
            return true;
        }
        // A row whose object is already deleted has waited at a hook of an earlier request.
        if row.state == State::INIT || row.state.is_complete(Action::Delete) {
            self.forget(id, out);
            return true;
        }
        if self.may_not_delete(id, out) || self.hold(id, index, Hook::PreDelete, out) {
            return false;
        }
        self.start(id, index, Operation::Delete, None, out);
        false
    }

    fn act(&mut self, index: Index, id: ResourceId, out: &mut Vec<Command>) -> bool {
        let Some(row) = self.rows.get(&id) else { return true };
        let has_none = row.state == State::INIT || row.state.is_complete(Action::Delete);
        if matches!(self.request.goal(), Goal::Check | Goal::Snapshot) && has_none {
            // Nothing was created, or the object is deleted and a hook is not cleared: there is nothing to check or to save.
            return true;
        }
        let saved = saved_by(row) == Some(self.request.generation);
        if self.request.goal() == Goal::Snapshot && row.state.is_complete(Action::Snapshot) && saved {
            // A previous engine has done it.
            return true;
        }
        let (operation, refused) = match self.request.goal() {
            Goal::Converge | Goal::Check => (Operation::Check, false),
            Goal::Snapshot => (Operation::Snapshot, false),
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
            let verb = if self.request.goal() == Goal::Suspend { "suspend" } else { "resume" };
            let text = format!("State ('{action}', '{status}') invalid for {verb}");
            let failure = Failure::other(Class::Error, text);
            let blame = Blame::of(&row.name, &failure);
            self.fail(blame.stack_reason(operation.action()), out);
            return false;
        }
        self.start(id, index, operation, None, out);
        false
    }

    fn fail(&mut self, reason: String, out: &mut Vec<Command>) {
        if self.stage != Stage::Going {
            return;
        }
        let answers = matches!(self.request.action, Action::Create | Action::Update | Action::Adopt | Action::Restore);
        if self.request.rollback && answers {
            self.stage = Stage::Idle;
            self.drop_holds(out);
            let state = State::new(self.request.action, Status::Failed);
            out.push(Command::End { state, reason, rolls_back: true });
        } else {
            self.stage = Stage::Failing(reason);
            self.drop_holds(out);
        }
    }

    fn end_if_done(&mut self, out: &mut Vec<Command>) {
        if !self.busy.is_empty() || !self.held.is_empty() {
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
                (Status::Failed, "Internal error: resources depend on each other".to_owned())
            }
            Stage::Failing(reason) => (Status::Failed, reason.clone()),
            Stage::Idle | Stage::Going => return,
        };
        self.stage = Stage::Idle;
        out.push(Command::End { state: State::new(action, status), reason, rolls_back: false });
    }
}
