//! Events and commands of the planner.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kiln_resource::{Action, Parting, Phase, Resource, ResourceId, StackId, State, Status};
use kiln_value::{Map, Value};

use crate::{Allowed, Blame, Decision, Guards, Hook, Hooks};

/// The goal of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Exactly the resources of the template; for a delete the template is empty.
    Converge,
    /// Check every resource.
    Check,
    /// Suspend every resource, dependants first.
    Suspend,
    /// Resume every resource, dependencies first.
    Resume,
    /// Save every resource.
    Snapshot,
}

impl Goal {
    pub(crate) fn of(action: Action) -> Self {
        match action {
            Action::Check => Self::Check,
            Action::Suspend => Self::Suspend,
            Action::Resume => Self::Resume,
            Action::Snapshot => Self::Snapshot,
            _ => Self::Converge,
        }
    }
}

/// A request to a stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The stack.
    pub stack: StackId,
    /// The stack's action.
    pub action: Action,
    /// Number of the request. A rollback has the number of the request that failed.
    pub generation: i64,
    /// The desired resources of a create, an update or a rollback.
    pub targets: Vec<Target>,
    /// Former and present names of resources: rows with these former names get the present ones.
    pub moves: Vec<(String, String)>,
    /// Whether a failure triggers a rollback.
    pub rollback: bool,
    /// The hooks of the resources.
    pub hooks: Hooks,
    /// The resources whose objects exist already, with the metadata to adopt: an update adopts them in place of creating
    /// them.
    pub adopted: BTreeMap<String, Value>,
    /// Resources on which nothing is done.
    pub skipped: BTreeSet<String>,
    /// Why the request must not begin: it only completes running operations, then it fails without a rollback.
    pub barred: Option<String>,
    /// What the plan that the request keeps to allows; `None`: there is no plan.
    pub allowed: Option<Arc<Allowed>>,
    /// The guards to heed; `None`: there are none.
    pub guards: Option<Arc<Guards>>,
}

impl Request {
    /// A request for nothing but its action.
    pub fn new(stack: StackId, action: Action, generation: i64) -> Self {
        let (targets, hooks, adopted) = (Vec::new(), Hooks::new(), BTreeMap::new());
        Self {
            stack,
            action,
            generation,
            targets,
            moves: Vec::new(),
            rollback: false,
            hooks,
            adopted,
            skipped: BTreeSet::new(),
            barred: None,
            allowed: None,
            guards: None,
        }
    }

    pub(crate) fn goal(&self) -> Goal {
        Goal::of(self.action)
    }

    /// Whether the object of a new resource exists already.
    pub(crate) fn adopts(&self, name: &str) -> bool {
        self.action == Action::Adopt || self.adopted.contains_key(name)
    }
}

/// A resource of the template with the names of its dependencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Logical name.
    pub name: String,
    /// Names of its explicit and implicit dependencies; unknown names are ignored.
    pub requires: Vec<String>,
    /// Type name in the template, and its implementation.
    pub kind: (String, String),
    /// An unused ID, for the row if there is none yet.
    pub fresh: ResourceId,
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A request starts, possibly while another one is running: its operations continue, but its plan is dropped.
    Begin(Box<Request>),
    /// A [`Command::Decide`] was executed.
    Decided {
        /// The serial number of that command.
        serial: u64,
        /// The resource's name.
        name: String,
        /// The decision.
        decision: Decision,
        /// An unused ID, for a new row.
        fresh: ResourceId,
        /// Type name in the template, and its implementation.
        kind: (String, String),
        /// Attributes of an unchanged resource that others read for the first time.
        attributes: Map,
    },
    /// Another engine has begun an operation, and its call may have been lost ([`Command::Resume`]): the new phase.
    TakenOver {
        /// The row.
        row: ResourceId,
        /// The phase.
        phase: Phase,
    },
    /// An operation completed a step.
    Stepped {
        /// The row.
        row: ResourceId,
        /// The physical ID, if it became known.
        physical_id: Option<String>,
        /// The nested stack, if it is new.
        child: Option<StackId>,
        /// Changes of the driver data; null removes an entry.
        data: Map,
        /// The new phase of the operation.
        phase: Phase,
        /// Number of failed attempts.
        attempt: u32,
        /// The token of the attempt.
        token: String,
    },
    /// A running operation waits longer than usual, or not any more. It becomes the reason of the row, without an event.
    Waits {
        /// The row.
        row: ResourceId,
        /// What for; `None`: for nothing unusual.
        reason: Option<String>,
    },
    /// An operation ended.
    Finished {
        /// The row.
        row: ResourceId,
        /// The physical ID, if it became known.
        physical_id: Option<String>,
        /// Changes of the driver data.
        data: Map,
        /// The attributes that others read; `None`: unchanged.
        attributes: Option<Map>,
        /// The outcome.
        outcome: Outcome,
    },
    /// The timeout of the action expired.
    TimedOut,
    /// The request is canceled without a rollback.
    Cancelled {
        /// Whether running operations are interrupted; otherwise they are completed.
        interrupt: bool,
    },
    /// A resource cannot process a message in its state.
    Refused {
        /// The row.
        row: ResourceId,
        /// The reason for the event.
        reason: String,
    },
    /// A resource processed a message.
    Received {
        /// The row.
        row: ResourceId,
        /// The physical ID, if it became known.
        physical_id: Option<String>,
        /// Changes of the driver data.
        data: Map,
        /// The metadata, if they changed.
        metadata: Option<Map>,
        /// The reason for the event; `None`: there is none.
        reason: Option<String>,
    },
    /// The nested stack of a group has changed, without an operation on the group or at the end of one.
    NestedChanged {
        /// The row.
        row: ResourceId,
        /// The attributes that others read; `None`: unchanged.
        attributes: Option<Map>,
        /// The metadata, if they changed.
        metadata: Option<Map>,
    },
    /// The guards have changed. They hold for the operations whose calls have not begun ([`crate::Model::guarded`]).
    Guarded(Option<Arc<Guards>>),
    /// A user cleared a hook.
    HookCleared {
        /// The resource's name.
        name: String,
        /// The hook.
        hook: Hook,
    },
    /// A user gave up the delete of a resource.
    Forgotten {
        /// The row.
        row: ResourceId,
        /// Who, and why.
        parting: Box<Parting>,
    },
    /// A user marked a resource healthy or unhealthy (docs/heat-behaviour.md §11).
    Marked {
        /// The row.
        row: ResourceId,
        /// Whether it is healthy.
        healthy: bool,
        /// The reason.
        reason: String,
    },
}

/// The outcome of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Success, with an optional status text.
    Done(Option<String>),
    /// The update cannot be done in place: the object must be replaced. Contains Heat's text.
    Replace(String),
    /// Failure.
    Failed(Blame),
}

/// An action for the engine. This is everything that the planner can ask for, and the engine writes no row without a
/// [`Command::Save`] or [`Command::Remove`]. Commands that store data ([`Command::Save`], [`Command::Remove`], [`Command::Note`])
/// precede those that depend on it and are committed first.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Resolve the definition of a resource and compare it with the current state: answer with [`Event::Decided`].
    Decide {
        /// The serial number to return.
        serial: u64,
        /// The resource's name.
        name: String,
        /// Its current row.
        row: Option<ResourceId>,
    },
    /// Store the row.
    Save(ResourceId),
    /// Delete the row, which is no longer in the model.
    Remove(ResourceId),
    /// The row had this name before.
    Moved(ResourceId, String),
    /// Append an event about a row.
    Note(Box<Note>),
    /// Record the object of the row that the next command removes as an orphan. The note says why its delete failed.
    Orphan(Box<Note>, Box<Parting>),
    /// Continue the operation of the row from its current phase.
    Start(ResourceId),
    /// Take over an operation that another engine started.
    Resume(ResourceId),
    /// Interrupt a running operation at the next safe point.
    Interrupt(ResourceId),
    /// The request is finished.
    End {
        /// The stack's state.
        state: State,
        /// The reason.
        reason: String,
        /// A rollback follows: request it in the commit that stores the end. Operations may still be running.
        rolls_back: bool,
    },
}

/// An event about a row, with the state of the row at that time.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// The row.
    pub row: ResourceId,
    /// Logical name.
    pub name: String,
    /// Type name in the template, and its implementation.
    pub kind: (String, String),
    /// The physical ID at that time.
    pub physical_id: Option<String>,
    /// The properties from the template.
    pub properties: Value,
    /// The action for the event: that of the state, or `SIGNAL`.
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

    /// A message that a row received: the status is that of the row.
    pub(crate) fn of_signal(row: &Resource, reason: String) -> Self {
        Self { action: "SIGNAL", ..Self::of(row, row.state, reason) }
    }
}
