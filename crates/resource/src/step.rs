//! The results of calls of drivers.

use std::time::Duration;

use kiln_value::{Map, Value};

use crate::Observed;
use crate::{Received, SoftwareChange};

/// The progress of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Finished.
    Done,
    /// The operation continues with [`crate::Driver::poll`] and this state. Also used between the calls of an operation with
    /// several steps, with `after` zero, so that each step is stored.
    Wait {
        /// The state; small JSON.
        state: Value,
        /// The delay before the next poll.
        after: Duration,
    },
    /// The data of the step is stored, and the operation starts again with it: what comes before the call of a create
    /// that must not be made twice.
    Prepared,
    /// The update requires a replacement (Heat's `UpdateReplace`).
    Replace,
}

/// The result of a call of a driver. It is stored before the operation continues.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The ID of the object, if it became known or changed; empty if the resource has none any more.
    pub physical_id: Option<String>,
    /// Entries for the data of the resource; null removes one.
    pub data: Map,
    /// How far the operation is.
    pub progress: Progress,
    /// The project of the stack's users, if it was created or found.
    pub user_project: Option<String>,
    /// What observed resources have received, by their ID: stored together with the step, in this order.
    pub received: Vec<(String, Received)>,
    /// Changes of software configs and deployments: stored together with the step or before it.
    pub software: Vec<SoftwareChange>,
    /// What the operation waits for, for the reason of a timeout: `the status ACTIVE, not BUILD`. Not stored.
    pub waits_for: Option<String>,
    /// At the end of a create or update: the last answer with the whole object, if one was received
    /// ([`crate::Driver::live_in`]).
    pub answer: Option<Value>,
}

impl Step {
    /// Finished.
    pub fn done() -> Self {
        Self {
            physical_id: None,
            data: Map::new(),
            progress: Progress::Done,
            user_project: None,
            received: Vec::new(),
            software: Vec::new(),
            waits_for: None,
            answer: None,
        }
    }

    /// Continues after a delay.
    pub fn wait(state: impl Into<Value>, after: Duration) -> Self {
        Self { progress: Progress::Wait { state: state.into(), after }, ..Self::done() }
    }

    /// The same with what it waits for.
    #[must_use]
    pub fn waits_for(mut self, what: impl Into<String>) -> Self {
        self.waits_for = Some(what.into());
        self
    }

    /// To be started again with new data.
    pub fn prepared() -> Self {
        Self { progress: Progress::Prepared, ..Self::done() }
    }

    /// The resource must be replaced.
    pub fn replace() -> Self {
        Self { progress: Progress::Replace, ..Self::done() }
    }

    /// The same with the ID of the object.
    #[must_use]
    pub fn id(mut self, physical_id: impl Into<String>) -> Self {
        self.physical_id = Some(physical_id.into());
        self
    }

    /// The same with an entry of data to store.
    #[must_use]
    pub fn data(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.data.insert(key.into(), value.into());
        self
    }

    /// The same with the object in an answer.
    #[must_use]
    pub fn answer(mut self, object: Value) -> Self {
        self.answer = Some(object);
        self
    }

    /// The same with what an observed resource has received.
    #[must_use]
    pub fn received(mut self, sibling: &Observed, received: Received) -> Self {
        self.received.push((sibling.id.clone(), received));
        self
    }

    /// The same with a change of a software config or deployment. What reads it must be another step.
    #[must_use]
    pub fn software(mut self, change: SoftwareChange) -> Self {
        self.software.push(change);
        self
    }

    /// The same with the project of the stack's users.
    #[must_use]
    pub fn user_project(mut self, id: impl Into<String>) -> Self {
        self.user_project = Some(id.into());
        self
    }
}

/// The result of [`crate::Driver::find`].
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// The call created the object: the operation continues as if [`crate::Driver::start`] had returned this step.
    Made(Step),
    /// The object has no mark ([`crate::Attempt::unmarked_since`]), and these may be the one. The engine decides.
    Alike(Vec<Alike>),
    /// There is no object of this attempt, or repeating the call does no harm. The engine uses this result only when no
    /// call of the attempt can be in progress any more.
    NotMade,
    /// The object cannot be identified. The create is not repeated: it fails with this text.
    CannotTell(String),
}

/// An object that may be that of a lost create.
#[derive(Clone, Debug, PartialEq)]
pub struct Alike {
    /// The step if it is the one, with its ID.
    pub step: Step,
    /// When it was created, in seconds since 1970; `None` if the service does not say.
    pub created: Option<i64>,
    /// Whether it has every property that was sent.
    pub fits: bool,
}
