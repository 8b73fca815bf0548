//! Saved plans: changes of stacks that are prepared, and executed later.

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_resource::{Action, PlanId, StackId, words};
use kiln_value::Value;
use serde::{Deserialize, Serialize};

use crate::{Author, Desired, DesiredText, Error};

/// A plan that is saved.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its ID.
    pub id: PlanId,
    /// Project ID.
    pub project: String,
    /// The stack, which may not exist yet.
    pub stack: StackId,
    /// The name of the stack.
    pub stack_name: String,
    /// The name of a change set, unique for the stack; other plans have none.
    pub name: Option<String>,
    /// What it requests: CREATE, ADOPT, UPDATE or DELETE.
    pub action: Action,
    /// The generation of the stack that it changes; 0: it creates the stack.
    pub generation: i64,
    /// Who made it; `None` for change sets of the release before.
    pub author: Option<Author>,
    /// The desired state that it sets, if it sets one.
    pub desired: Option<Desired>,
    /// Digest of what was shown; empty for change sets of the release before.
    pub digest: String,
    /// Its state.
    pub state: PlanState,
    /// What else the request needs. Encrypted at rest.
    pub body: Value,
    /// Time of creation.
    pub created: Timestamp,
    /// When it expires; `None`: never.
    pub expires: Option<Timestamp>,
}

words! {
    /// The state of a plan.
    PlanState {
        /// It can be executed, unless it has expired.
        Ready = "READY",
        /// A request used it.
        Executed = "EXECUTED",
        /// A user rejected it.
        Rejected = "REJECTED",
    }
}

/// A plan to save, with its texts and parts.
#[derive(Clone, Debug, PartialEq)]
pub struct NewPlan {
    /// The plan.
    pub plan: Plan,
    /// The texts of [`Plan::desired`].
    pub desired: Option<DesiredText>,
    /// The planned resources.
    pub parts: Vec<PlanPart>,
}

/// The planned resources of a stack, or some of them. Encrypted at rest.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanPart {
    /// The path of the resource that owns the stack; empty for the root.
    pub path: String,
    /// The resources, as JSON. It may be large, so it is a text here.
    pub body: String,
}

/// The plan of a request, and the place of a stack in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// The plan.
    pub plan: PlanId,
    /// The path of the resource that owns the stack; empty for the root.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
}

impl Planned {
    /// The place of the nested stack of a resource.
    #[must_use]
    pub fn inside(&self, resource: &str) -> Self {
        let path = if self.path.is_empty() { resource.to_owned() } else { format!("{}/{resource}", self.path) };
        Self { plan: self.plan, path }
    }
}

/// The approval of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    /// The plan.
    pub plan: PlanId,
    /// Who approves it.
    pub author: Author,
    /// When.
    pub time: Timestamp,
}

/// Filters of a list of plans.
#[derive(Clone, Debug, Default)]
pub struct PlanQuery {
    /// Project ID.
    pub project: String,
    /// Only plans for this stack.
    pub stack: Option<StackId>,
    /// Only plans for stacks with this name.
    pub stack_name: Option<String>,
    /// Only plans before this one; [`Error::NotFound`] if it does not exist.
    pub marker: Option<PlanId>,
    /// Maximum number.
    pub limit: Option<u64>,
    /// Without the bodies, which are null then.
    pub without_bodies: bool,
}

/// Plans. The request that executes one uses it up in its own transaction ([`crate::Details::planned`]):
/// [`Error::PlanUsed`] if it is not ready, or has expired by the clock of the database.
#[async_trait]
pub trait PlanStore: Send + Sync {
    /// Saves a plan. [`Error::NameTaken`] if the stack has another one with its name.
    async fn save_plan(&self, new: &NewPlan) -> Result<(), Error>;
    /// A plan.
    async fn plan(&self, project: &str, id: PlanId) -> Result<Option<Plan>, Error>;
    /// Plans, newest first.
    async fn plans(&self, query: &PlanQuery) -> Result<Vec<Plan>, Error>;
    /// The number of plans of a project.
    async fn count_plans(&self, project: &str) -> Result<u64, Error>;
    /// The parts of a plan in the order in which they were saved: all, or those of the stack with a path.
    async fn plan_parts(&self, plan: PlanId, path: Option<&str>) -> Result<Vec<String>, Error>;
    /// Rejects a plan that is ready; returns whether it was.
    async fn reject_plan(&self, plan: PlanId) -> Result<bool, Error>;
    /// Approves a plan; an approval of the same user is kept as it is.
    async fn approve_plan(&self, approval: &Approval) -> Result<(), Error>;
    /// The approvals of a plan, oldest first.
    async fn approvals(&self, plan: PlanId) -> Result<Vec<Approval>, Error>;
    /// Deletes plans, except those whose requests are in progress: the engine reads them. Returns the IDs of these.
    async fn delete_plans(&self, ids: &[PlanId]) -> Result<Vec<PlanId>, Error>;
}
