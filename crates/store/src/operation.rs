//! Operations: who requested what of a stack, and how it ended.

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_resource::{Action, OperationId, PlanId, Status};
use uuid::Uuid;

use crate::{Desired, Error, Stack, StackId};

/// A request to a stack that is not a part of the work of another one: nearly always to a root stack. What its nested stacks
/// do for it belongs to it. A request to a nested stack is an operation of its own if a user sent it there, or if its group
/// scales because of a signal.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Its ID.
    pub id: OperationId,
    /// The stack.
    pub stack: StackId,
    /// The root of its tree.
    pub root: StackId,
    /// Project ID of the stack.
    pub project: String,
    /// What was requested.
    pub action: Action,
    /// The number of the request.
    pub generation: i64,
    /// Who requested it; `None`: an engine did.
    pub author: Option<Author>,
    /// The ID of the request over the API (`req-…`); empty if it is not known.
    pub request: String,
    /// The desired state that it set, if it set one: a revision of the stack.
    pub desired: Option<Desired>,
    /// Time of the request.
    pub begun: Timestamp,
    /// How it ended. Nothing is stored for a request that a newer one replaced.
    pub end: Option<End>,
    /// The plan that it executes.
    pub plan: Option<PlanId>,
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// ID.
    pub user_id: String,
    /// Name.
    pub username: String,
}

/// The end of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// Time.
    pub time: Timestamp,
    /// COMPLETE or FAILED.
    pub status: Status,
    /// The reason of the stack's state.
    pub reason: String,
}

impl Operation {
    /// The ID of the operation that the request to a stack with this number begins.
    pub fn id_of(stack: StackId, generation: i64) -> OperationId {
        OperationId(Uuid::new_v5(&stack.0, format!("operation {generation}").as_bytes()))
    }

    /// The operation that the last request to a stack began; `None`: the request is a part of another one.
    pub(crate) fn of(stack: &Stack, author: Option<&Author>, desired: Option<Desired>) -> Option<Self> {
        stack.details.operation.is_none().then(|| Self {
            id: stack.operation(),
            stack: stack.id,
            root: stack.root,
            project: stack.project.clone(),
            action: stack.state.action,
            generation: stack.generation,
            author: author.cloned(),
            request: stack.details.origin.as_ref().map(|origin| origin.request.clone()).unwrap_or_default(),
            desired,
            begun: stack.updated.unwrap_or(stack.created),
            end: None,
            plan: stack.details.planned.as_ref().map(|planned| planned.plan),
        })
    }
}

/// Filters of a list of operations, newest first.
#[derive(Clone, Debug)]
pub struct OperationQuery {
    /// Which operations.
    pub of: Operations,
    /// Only operations before this one; [`Error::NotFound`] if it does not exist.
    pub marker: Option<OperationId>,
    /// Maximum number.
    pub limit: Option<u64>,
}

/// Which operations are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operations {
    /// All of the tree with this root.
    OfTree(StackId),
    /// Those that set the desired state of this stack.
    Revisions(StackId),
}

/// Reads operations. They are written with requests, and with [`crate::Batch::settle`].
#[async_trait]
pub trait OperationStore: Send + Sync {
    /// Operations.
    async fn operations(&self, query: &OperationQuery) -> Result<Vec<Operation>, Error>;
    /// An operation in the tree with this root.
    async fn operation(&self, root: StackId, id: OperationId) -> Result<Option<Operation>, Error>;
    /// The operation that set the desired state of a stack with this request.
    async fn revision(&self, stack: StackId, generation: i64) -> Result<Option<Operation>, Error>;
}
