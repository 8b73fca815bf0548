//! Stacks that are taken over from Heat.

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_resource::{Resource, SoftwareConfig, SoftwareDeployment, words};
use kiln_value::Secret;

use crate::{CredentialsId, DesiredText, Error, Event, Snapshot, Stack, StackId};

/// What the project of a stack is called until it is switched.
const OF_HEAT: &str = "heat:";

/// The project of a stack in the database until its project is switched. No token is of such a project, so that no request,
/// signal or list of a tenant reaches the stack, and it has no work for an engine: it belongs to Heat.
pub fn waiting(project: &str) -> String {
    format!("{OF_HEAT}{project}")
}

/// The project of such a stack after its switch; the same for other projects.
pub fn awaited(project: &str) -> &str {
    project.strip_prefix(OF_HEAT).unwrap_or(project)
}

/// A stack of Heat with its nested stacks, as Kiln stores it. Its projects are those of Heat.
#[derive(Clone, Debug)]
pub struct TakenTree {
    /// What is known about it.
    pub record: TakeOver,
    /// The stacks, parents first. They have no work.
    pub stacks: Vec<TakenStack>,
    /// Their resources, in the order of their creation.
    pub resources: Vec<Resource>,
    /// Their events, in their order.
    pub events: Vec<Event>,
    /// Their snapshots.
    pub snapshots: Vec<Snapshot>,
    /// The credentials of the root stack.
    pub credentials: Option<(CredentialsId, Secret<String>)>,
}

impl TakenTree {
    /// A tree without stacks.
    pub fn of(record: TakeOver) -> Self {
        let (stacks, resources, events, snapshots) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { record, stacks, resources, events, snapshots, credentials: None }
    }
}

/// A stack with its texts.
#[derive(Clone, Debug)]
pub struct TakenStack {
    /// The stack.
    pub stack: Stack,
    /// Its texts.
    pub desired: DesiredText,
    /// The texts to which a rollback returns.
    pub previous: Option<DesiredText>,
}

/// The software configs and deployments of a project.
#[derive(Clone, Debug, Default)]
pub struct TakenSoftware {
    /// The configs.
    pub configs: Vec<SoftwareConfig>,
    /// The deployments.
    pub deployments: Vec<SoftwareDeployment>,
}

/// What is known about a stack of Heat that is taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeOver {
    /// The root stack.
    pub root: StackId,
    /// Its project.
    pub project: String,
    /// Its name.
    pub name: String,
    /// A digest of all its rows in Heat's tables: as long as it is the same, nothing has changed there.
    pub digest: String,
    /// How far it is.
    pub state: TakeOverState,
    /// Why it could not be imported; empty if it could.
    pub reason: String,
    /// When it was imported.
    pub time: Timestamp,
}

words! {
    /// How far a take-over is.
    TakeOverState {
        /// It could not be imported.
        Refused = "refused",
        /// It is in Kiln's tables, and belongs to Heat.
        Imported = "imported",
        /// It belongs to Kiln.
        Switched = "switched",
        /// It goes back to Heat: nobody works on it, and Kiln's rows are newer than Heat's until they are written there.
        Returning = "returning",
    }
}

impl TakeOverState {
    /// Whether Kiln's rows are the newer ones: an import would undo changes.
    pub fn is_newer_in_kiln(self) -> bool {
        matches!(self, Self::Switched | Self::Returning)
    }
}

words! {
    /// Who answers requests for a project while Kiln stands before a Heat.
    Owner {
        /// Heat, as long as the project was not switched.
        Heat = "heat",
        /// Nobody: the project is being switched, or goes back.
        Moving = "moving",
        /// Kiln.
        Kiln = "kiln",
    }
}

/// Knows the owners of projects.
#[async_trait]
pub trait OwnerStore: Send + Sync {
    /// The owner of a project. The project of the users of a stack has the owner of the project of the stack.
    async fn owner(&self, project: &str) -> Result<Owner, Error>;
}
