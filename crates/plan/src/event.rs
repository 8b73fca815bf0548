//! What the planner is told and what it answers.

use kiln_resource::{Action, Phase, Resource, ResourceId, State, Status};
use kiln_value::{Map, Value};

use crate::{Blame, Decision};

/// What a request wants of the resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The resources of the template and no others; for a delete the template is empty.
    Converge,
    /// Every resource looked at.
    Check,
    /// Every resource asleep, dependants first.
    Suspend,
    /// Every resource awake, requirements first.
    Resume,
}

/// A resource of the template and the names of those it must be made after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Logical name.
    pub name: String,
    /// Names of the resources it requires, explicitly or not; unknown ones are ignored.
    pub requires: Vec<String>,
    /// Type as the template names it, and what it stands for.
    pub kind: (String, String),
    /// An unused id, for the row of a resource that has none.
    pub fresh: ResourceId,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A request begins, perhaps while another is under way: that one's operations go on, but its plan is dropped.
    Begin {
        /// The stack's action.
        action: Action,
        /// What it wants.
        goal: Goal,
        /// Number of the request.
        generation: i64,
        /// The resources that should be; empty for a delete.
        targets: Vec<Target>,
        /// Whether a failure is to be answered by a rollback.
        rollback: bool,
    },
    /// A [`Command::Decide`] was carried out.
    Decided {
        /// The serial of that command.
        serial: u64,
        /// The resource's name.
        name: String,
        /// What becomes of it.
        decision: Decision,
        /// An unused id, for the row that this may make.
        fresh: ResourceId,
        /// Type as the template names it, and what it stands for.
        kind: (String, String),
        /// Attributes of a resource that stays, which others read for the first time.
        attributes: Map,
    },
    /// An operation came one step on.
    Stepped {
        /// The row.
        row: ResourceId,
        /// The object's id, if it became known.
        physical_id: Option<String>,
        /// Changes of the driver's data; null removes.
        data: Map,
        /// Where the operation stands now.
        phase: Phase,
        /// Attempts that failed before.
        attempt: u32,
        /// The token of the attempt.
        token: String,
    },
    /// An operation ended.
    Finished {
        /// The row.
        row: ResourceId,
        /// The object's id, if it became known.
        physical_id: Option<String>,
        /// Changes of the driver's data.
        data: Map,
        /// The attributes that others read; `None`: as they were.
        attributes: Option<Map>,
        /// How it ended.
        outcome: Outcome,
    },
    /// The time for the action is over.
    TimedOut,
    /// The request is to end as failed, without a rollback.
    Cancelled {
        /// Whether running operations are interrupted; else they are awaited.
        interrupt: bool,
    },
    /// A resource took in a message.
    Received {
        /// The row.
        row: ResourceId,
        /// The object's id, if it became known.
        physical_id: Option<String>,
        /// Changes of the driver's data.
        data: Map,
        /// The reason of the event that shows it.
        reason: String,
    },
    /// A user says whether a resource is healthy (docs/heat-behaviour.md §11).
    Marked {
        /// The row.
        row: ResourceId,
        /// What the user says.
        healthy: bool,
        /// Why.
        reason: String,
    },
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Well; a text other than the default may say more.
    Done(Option<String>),
    /// The update cannot be done in place: the object must be replaced; with Heat's text.
    Replace(String),
    /// Badly.
    Failed(Blame),
}

/// Something to do. Those that store ([`Command::Save`], [`Command::Remove`], [`Command::Note`]) come before those
/// that act on them and are committed first.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Resolve the definition of a resource and compare it with what is: answer with [`Event::Decided`].
    Decide {
        /// To be given back.
        serial: u64,
        /// The resource's name.
        name: String,
        /// The row it has now.
        row: Option<ResourceId>,
    },
    /// Store the row as it is now.
    Save(ResourceId),
    /// Forget the row, which is taken out of the model.
    Remove(ResourceId),
    /// Append an event about a row.
    Note(Box<Note>),
    /// Carry on the operation that the row's step holds, from the phase it is in.
    Start(ResourceId),
    /// Take up an operation that another engine began.
    Resume(ResourceId),
    /// End a running operation at the next safe point.
    Interrupt(ResourceId),
    /// The action failed and a rollback is wanted: store that, then [`Event::Begin`] with what was before.
    RollBack {
        /// Reason of the failure.
        reason: String,
    },
    /// The request came to its end.
    End {
        /// The stack's state.
        state: State,
        /// The reason.
        reason: String,
    },
}

/// An event about a row, with what it shows of the row as that was then.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// The row.
    pub row: ResourceId,
    /// Logical name.
    pub name: String,
    /// Type as the template names it, and what it stands for.
    pub kind: (String, String),
    /// The object's id then.
    pub physical_id: Option<String>,
    /// The properties that the template gives.
    pub properties: Value,
    /// The action as the event shows it: the state's, or `SIGNAL`.
    pub action: &'static str,
    /// The status.
    pub status: Status,
    /// The reason.
    pub reason: String,
}

impl Note {
    pub(crate) fn of(row: &Resource, state: State, reason: String) -> Self {
        Self {
            row: row.id,
            name: row.name.clone(),
            kind: (row.resource_type.clone(), row.implementation.clone()),
            physical_id: row.physical_id.clone(),
            properties: row.definition.as_ref().map_or(Value::Null, |held| Value::Map(held.given().clone())),
            action: state.action.as_str(),
            status: state.status,
            reason,
        }
    }

    /// A message that a row took in: the status is the row's.
    pub(crate) fn of_signal(row: &Resource, reason: String) -> Self {
        Self { action: "SIGNAL", ..Self::of(row, row.state, reason) }
    }
}
