//! What the planner does, as tables: the rows of a stack and an event, and the commands that follow. Each file is about one
//! subject. A command is written as one line ([`line`]), a row by its number: row 1 of the resource `a` is `a1`.

mod current;
mod decisions;
mod guarded;
mod hooks;
mod moves;
mod order;
mod planned;
mod rollback;
mod running;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kiln_plan::{Blame, Command, Decision, Event, Hook, Hooks, Model, Outcome, Request, Target};
use kiln_resource::{
    Action, Failure, Operation, Phase, Resource, ResourceId, Running, StackId, State, Status, StoredDefinition,
};
use kiln_value::{Class, Map, Value};

fn id(number: u128) -> ResourceId {
    ResourceId(uuid::Uuid::from_u128(number))
}

fn number(id: ResourceId) -> u128 {
    id.0.as_u128()
}

/// The time of an event: seconds since the epoch.
fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn definition(version: i64) -> Arc<StoredDefinition> {
    let mut definition = StoredDefinition::of_type("T");
    definition.properties.insert("version".to_owned(), version.into());
    Arc::new(definition)
}

/// A row that request 1 has created.
fn row(name: &str, number: u128) -> Resource {
    let mut row = Resource::new(StackId(uuid::Uuid::nil()), id(number), name, "T", at(0));
    (row.state, row.generation) = (State::new(Action::Create, Status::Complete), 1);
    (row.physical_id, row.definition) = (Some(format!("object-{number}")), Some(definition(1)));
    row
}

/// A row of another request.
fn of_request(generation: i64, row: Resource) -> Resource {
    Resource { generation, ..row }
}

fn in_state(action: Action, status: Status, row: Resource) -> Resource {
    Resource { state: State::new(action, status), ..row }
}

/// A row that only waits to be created.
fn unmade(row: Resource) -> Resource {
    Resource { state: State::INIT, physical_id: None, definition: None, ..row }
}

fn requires<const N: usize>(others: [u128; N], row: Resource) -> Resource {
    Resource { requires: others.map(id).into(), ..row }
}

/// Two rows of one name, of which the second replaces the first.
fn replaced(old: Resource, new: Resource) -> [Resource; 2] {
    let (before, after) = (old.id, new.id);
    [Resource { replaced_by: Some(after), ..old }, Resource { replaces: Some(before), ..new }]
}

/// A row with a running operation, as an engine that failed has left it.
fn runs(operation: Operation, row: Resource) -> Resource {
    let (definition, state) = match operation {
        Operation::Update { .. } => (Some(definition(2)), State::new(Action::Update, Status::InProgress)),
        _ => (None, State::new(operation.action(), Status::InProgress)),
    };
    let running = Running {
        operation,
        definition,
        phase: Phase::Intent,
        token: String::new(),
        attempt: 0,
        requires: Vec::new(),
        afterwards: kiln_resource::OperationState::Idle,
    };
    Resource { operation: running.into(), state, ..row }
}

fn update() -> Operation {
    Operation::Update { before: Map::new(), changed: Map::new() }
}

/// A resource of the template: its name, what it requires, and the number of its row if it has none yet.
fn target<const N: usize>(name: &str, requires: [&str; N], fresh: u128) -> Target {
    let (name, requires) = (name.to_owned(), requires.map(str::to_owned).into());
    Target { name, requires, kind: ("T".to_owned(), "T".to_owned()), fresh: id(fresh) }
}

fn request<const N: usize>(action: Action, generation: i64, targets: [Target; N]) -> Request {
    Request { targets: targets.into(), ..Request::new(StackId(uuid::Uuid::nil()), action, generation) }
}

fn create() -> Decision {
    Decision::Create { definition: definition(1) }
}

fn replace() -> Decision {
    Decision::Replace { definition: definition(2), why: Vec::new(), announce: None }
}

fn change() -> Decision {
    Decision::Update { definition: definition(2), before: Map::new(), changed: Map::new() }
}

fn keep() -> Decision {
    Decision::Keep { definition: None }
}

fn refuse() -> Decision {
    Decision::Refuse { failure: Failure::other(Class::ValueError, "unfit") }
}

/// A stack with its planner.
struct Stack {
    model: Model,
    /// Decisions that the planner waits for, by name.
    asked: BTreeMap<String, u64>,
    time: i64,
}

impl Stack {
    fn of(rows: impl IntoIterator<Item = Resource>) -> Self {
        Self { model: Model::new(rows), asked: BTreeMap::new(), time: 0 }
    }

    /// The stack as another engine reads it from these rows.
    fn taken_over(&self) -> Self {
        Self::of(self.model.rows().cloned())
    }

    /// The commands that follow from an event.
    fn on(&mut self, event: Event) -> Vec<String> {
        self.time += 1;
        let commands = self.model.decide(at(self.time), event);
        for command in &commands {
            if let Command::Decide { serial, name, .. } = command {
                self.asked.insert(name.clone(), *serial);
            }
        }
        commands.iter().filter_map(|command| line(&self.model, command)).collect()
    }

    fn begin(&mut self, request: Request) -> Vec<String> {
        self.on(Event::Begin(Box::new(request)))
    }

    /// The decision about a resource; `fresh` is the number of a new row.
    fn decided(&mut self, name: &str, decision: Decision, fresh: u128) -> Vec<String> {
        let serial = self.asked.remove(name).expect("the planner asks");
        let (kind, attributes) = (("T".to_owned(), "T".to_owned()), Map::new());
        self.on(Event::Decided { serial, name: name.to_owned(), decision, fresh: id(fresh), kind, attributes })
    }

    fn ended(&mut self, row: u128, outcome: Outcome) -> Vec<String> {
        self.on(Event::Finished { row: id(row), physical_id: None, data: Map::new(), attributes: None, outcome })
    }

    fn done(&mut self, row: u128) -> Vec<String> {
        self.ended(row, Outcome::Done(None))
    }

    fn failed(&mut self, row: u128) -> Vec<String> {
        let name = self.model.row(id(row)).expect("a row").name.clone();
        self.ended(row, Outcome::Failed(Blame::of(&name, &Failure::other(Class::Error, "bad luck"))))
    }

    /// The number of the current row of a name.
    fn current(&self, name: &str) -> Option<u128> {
        self.model.current(name).map(|row| number(row.id))
    }

    fn row(&self, number: u128) -> &Resource {
        self.model.row(id(number)).expect("a row")
    }
}

/// A command in short. Saves are left out: each change of a row is saved, and what is stored with it precedes the commands
/// that depend on it.
fn line(model: &Model, command: &Command) -> Option<String> {
    let of = |id: ResourceId| match model.row(id) {
        Some(row) => format!("{}{}", row.name, number(id)),
        None => format!("row {}", number(id)),
    };
    let operation = |id: ResourceId| model.row(id).and_then(Resource::running).map(|one| one.operation.action());
    Some(match command {
        Command::Save(_) => return None,
        Command::Moved(row, from) => format!("move {from} to {}", of(*row)),
        Command::Decide { name, row, .. } => match row {
            Some(row) => format!("decide about {}", of(*row)),
            None => format!("decide about {name}"),
        },
        Command::Remove(row) => format!("remove row {}", number(*row)),
        Command::Note(note) if note.reason == "state changed" => {
            format!("note {}{}: {}_{}", note.name, number(note.row), note.action, note.status)
        }
        Command::Note(note) => {
            format!("note {}{}: {}_{}, {}", note.name, number(note.row), note.action, note.status, note.reason)
        }
        Command::Orphan(note, _) => format!("orphan {}{}", note.name, number(note.row)),
        Command::Start(row) => format!("start {} of {}", operation(*row)?, of(*row)),
        Command::Resume(row) => format!("resume {} of {}", operation(*row)?, of(*row)),
        Command::Interrupt(row) => format!("interrupt {}", of(*row)),
        Command::End { state, reason, rolls_back } => {
            let then = if *rolls_back { ", roll back" } else { "" };
            format!("end {}_{}{then}: {reason}", state.action, state.status)
        }
    })
}

/// The hooks of one resource.
fn hooks(name: &str, hook: Hook) -> Hooks {
    Hooks::from([(name.to_owned(), [hook].into())])
}
