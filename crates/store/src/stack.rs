//! Stacks and requests to them.

use jiff::Timestamp;
use kiln_resource::{Action, Converge, StackPolicy, State, Status};
use kiln_trace::Origin;
use serde::{Deserialize, Serialize};

use crate::{
    Author, CredentialsId, Desired, DesiredText, Operation, OperationId, PlanId, Planned, ResourceId, Snapshot,
    SnapshotId, StackId,
};

/// The parent resource of a nested stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Stack of the resource.
    pub stack: StackId,
    /// The row of the resource.
    pub resource: ResourceId,
    /// Its logical name.
    pub resource_name: String,
}

/// The parameters of the last request, in addition to the desired state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent of each other, and stored by name")]
pub struct Details {
    /// Objects are kept when their resources are deleted: the stack is abandoned, or a failed adopt is rolled back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_objects: bool,
    /// With `keep_objects`, only adopted objects are kept, not those that Kiln has created since: a failed adopt is rolled
    /// back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_adopted: bool,
    /// The resources that an update first compares with their objects.
    #[serde(flatten)]
    pub converge: Converge,
    /// The snapshot that is made or restored, or the data that is adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotId>,
    /// The lifecycle plug-ins have let the request begin.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub admitted: bool,
    /// The request is checked in the cloud before it begins.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preflight: bool,
    /// The rollback has a number of its own. Those of the release before have the number of the request that failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_number: bool,
    /// The request is one of several of its parent resource, and not the last one: a batch of a rolling update.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub batch: bool,
    /// The paths below the stack of the resources on which nothing is done, because a failed operation is continued without
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip: Vec<String>,
    /// The stack policy that an update has instead of that of the stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_policy: Option<StackPolicy>,
    /// The operation that the request is a part of; `None`: it is an operation of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// The plan that the request keeps to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<Planned>,
    /// Where the request is from. The store adds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

impl Details {
    /// The paths of [`Self::skip`] below the nested stack of a resource.
    pub fn skipped_inside(&self, resource: &str) -> Vec<String> {
        let inside = |path: &String| Some(path.strip_prefix(resource)?.strip_prefix('/')?.to_owned());
        self.skip.iter().filter_map(inside).collect()
    }

    /// The plan that the request uses up: those of nested stacks only keep to the plan of their root.
    pub(crate) fn plan_to_use(&self) -> Option<PlanId> {
        self.planned.as_ref().filter(|_| self.operation.is_none()).map(|planned| planned.plan)
    }

    /// With the origin of the present work.
    #[must_use]
    pub(crate) fn with_origin(self) -> Self {
        Self { origin: kiln_trace::current(), ..self }
    }
}

/// A stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// Its id.
    pub id: StackId,
    /// Its name.
    pub name: String,
    /// Project (tenant) id.
    pub project: String,
    /// The parent resource, if nested.
    pub parent: Option<Parent>,
    /// The root stack of its tree: itself, if not nested.
    pub root: StackId,
    /// 0 for a root stack.
    pub depth: u32,
    /// Action and status.
    pub state: State,
    /// Reason of the status.
    pub reason: String,
    /// The desired state.
    pub desired: Desired,
    /// The desired state to which a rollback returns: the last one that was reached by a create or update, or the state
    /// before the first update of a stack that never reached one. `None`: nothing.
    pub previous: Option<Desired>,
    /// The parameters of the last request.
    pub details: Details,
    /// Number of the last request; each request increments it.
    pub generation: i64,
    /// Number of the last finished request. There is work while it is below `generation`.
    pub settled: i64,
    /// Whether failures are not rolled back.
    pub disable_rollback: bool,
    /// Minutes an action may take; `None`: the operator's default.
    pub timeout_mins: Option<i64>,
    /// Tags.
    pub tags: Vec<String>,
    /// Name of the user who created it (`stack_owner`).
    pub username: String,
    /// ID of that user.
    pub user_id: String,
    /// Credentials of the tree, stored at the root.
    pub credentials: Option<CredentialsId>,
    /// Project of the stack's users.
    pub user_project: Option<String>,
    /// Number of messages that were sent to the stack. When it increases, the engine reads the inbox.
    pub messages: i64,
    /// Time of creation.
    pub created: Timestamp,
    /// Time of the last request after the creation.
    pub updated: Option<Timestamp>,
    /// Time of deletion.
    pub deleted: Option<Timestamp>,
    /// The number of batches that engines have written for the stack. The rows of its resources change only with them.
    pub writes: i64,
    /// Changes with each change of the guards of its project; 0: there was never one.
    pub guards: i64,
}

/// What a list shows of a stack. Reading it costs half as much as reading the whole row.
#[derive(Clone, Debug, PartialEq)]
pub struct StackSummary {
    /// Its ID.
    pub id: StackId,
    /// Its name.
    pub name: String,
    /// ID of its project.
    pub project: String,
    /// The stack that it is nested in.
    pub parent: Option<StackId>,
    /// The state that clients see.
    pub state: State,
    /// Reason of the state.
    pub reason: String,
    /// Whether failures are not rolled back.
    pub disable_rollback: bool,
    /// Timeout of an action in minutes.
    pub timeout_mins: Option<i64>,
    /// Tags.
    pub tags: Vec<String>,
    /// Name of the owner.
    pub username: String,
    /// ID of the project of its users.
    pub user_project: Option<String>,
    /// Time of the create.
    pub created: Timestamp,
    /// Time of the last update.
    pub updated: Option<Timestamp>,
    /// Time of the delete.
    pub deleted: Option<Timestamp>,
}

impl From<Stack> for StackSummary {
    fn from(stack: Stack) -> Self {
        Self {
            id: stack.id,
            name: stack.name,
            project: stack.project,
            parent: stack.parent.map(|parent| parent.stack),
            state: stack.state,
            reason: stack.reason,
            disable_rollback: stack.disable_rollback,
            timeout_mins: stack.timeout_mins,
            tags: stack.tags,
            username: stack.username,
            user_project: stack.user_project,
            created: stack.created,
            updated: stack.updated,
            deleted: stack.deleted,
        }
    }
}

impl Stack {
    /// Whether its last request adopts objects: an adopt, or an update with data to adopt.
    pub fn adopts(&self) -> bool {
        match self.state.action {
            Action::Adopt => true,
            Action::Update => self.details.snapshot.is_some(),
            _ => false,
        }
    }

    /// A new stack in its initial state.
    pub fn started(new: &NewStack) -> Self {
        Self {
            id: new.id,
            name: new.name.clone(),
            project: new.project.clone(),
            parent: new.parent.clone(),
            root: new.root,
            depth: new.depth,
            state: State::new(new.action, Status::InProgress),
            reason: started_text(new.action),
            desired: new.desired.digests(),
            previous: None,
            details: Details {
                snapshot: new.adopt.as_ref().map(|adopt| adopt.id),
                operation: new.operation,
                planned: new.planned.clone(),
                preflight: new.preflight,
                ..Details::default()
            }
            .with_origin(),
            generation: 1,
            settled: 0,
            disable_rollback: new.disable_rollback,
            timeout_mins: new.timeout_mins,
            tags: new.tags.clone(),
            username: new.username.clone(),
            user_id: new.user_id.clone(),
            credentials: new.credentials,
            user_project: new.user_project.clone(),
            messages: 0,
            created: new.now,
            updated: None,
            deleted: None,
            writes: 0,
            guards: 0,
        }
    }

    /// The operation of the last request.
    pub fn operation(&self) -> OperationId {
        self.details.operation.unwrap_or_else(|| Operation::id_of(self.id, self.generation))
    }

    /// The number of the rollback that the stack is in, or that was its last request. Those of the release before have none
    /// of their own, so that no row has theirs.
    pub fn rollback(&self) -> Option<i64> {
        let number = if self.details.own_number { self.generation } else { 0 };
        (self.state.action == Action::Rollback).then_some(number)
    }

    /// Whether it was abandoned: a delete of it keeps its objects.
    pub fn is_abandoned(&self) -> bool {
        self.state.action == Action::Delete && self.details.keep_objects && !self.details.only_adopted
    }

    /// Whether a request is unfinished.
    pub fn is_pending(&self) -> bool {
        self.settled < self.generation
    }
}

/// The reason of a state in which an action has just started.
pub(crate) fn started_text(action: Action) -> String {
    format!("Stack {action} started")
}

/// A stack to create. It starts at generation 1 with `CREATE_IN_PROGRESS` and the event "Stack CREATE started".
#[derive(Clone, Debug, PartialEq)]
pub struct NewStack {
    /// Its ID.
    pub id: StackId,
    /// Its name.
    pub name: String,
    /// Project ID.
    pub project: String,
    /// The parent resource, if nested; then `root` and `depth` are derived from that stack.
    pub parent: Option<Parent>,
    /// The root stack: itself, if not nested.
    pub root: StackId,
    /// 0 for a root stack.
    pub depth: u32,
    /// The first action: CREATE or ADOPT.
    pub action: Action,
    /// The desired state.
    pub desired: DesiredText,
    /// Whether failures are not rolled back.
    pub disable_rollback: bool,
    /// Timeout of an action in minutes.
    pub timeout_mins: Option<i64>,
    /// Tags.
    pub tags: Vec<String>,
    /// Name of the user.
    pub username: String,
    /// ID of the user.
    pub user_id: String,
    /// Credentials of the tree.
    pub credentials: Option<CredentialsId>,
    /// Project of the stack's users.
    pub user_project: Option<String>,
    /// The data to adopt, if the action is ADOPT.
    pub adopt: Option<Snapshot>,
    /// The operation that creates it; `None`: an operation of its own.
    pub operation: Option<OperationId>,
    /// [`Details::preflight`]
    pub preflight: bool,
    /// The plan that its create keeps to.
    pub planned: Option<Planned>,
    /// Current time.
    pub now: Timestamp,
}

impl NewStack {
    /// The plan that the create uses up.
    pub(crate) fn plan_to_use(&self) -> Option<PlanId> {
        self.planned.as_ref().filter(|_| self.operation.is_none()).map(|planned| planned.plan)
    }

    /// The user who creates it.
    pub(crate) fn author(&self) -> Option<Author> {
        let (user_id, username) = (self.user_id.clone(), self.username.clone());
        (!user_id.is_empty()).then_some(Author { user_id, username })
    }

    /// A root stack to create. Failures are not rolled back, and it has neither a user nor credentials.
    pub fn new(id: StackId, name: String, project: String, desired: DesiredText, now: Timestamp) -> Self {
        Self {
            id,
            name,
            project,
            parent: None,
            root: id,
            depth: 0,
            action: Action::Create,
            desired,
            disable_rollback: true,
            timeout_mins: None,
            tags: Vec::new(),
            username: String::new(),
            user_id: String::new(),
            credentials: None,
            user_project: None,
            adopt: None,
            operation: None,
            planned: None,
            preflight: false,
            now,
        }
    }
}

/// A request to an existing stack. It sets the state `<action>_IN_PROGRESS` with the reason and event `Stack <ACTION>
/// started` and increments the generation.
#[derive(Clone, Debug, PartialEq)]
pub struct StackRequest {
    /// The action: UPDATE, DELETE, ROLLBACK, SUSPEND, RESUME, CHECK …
    pub action: Action,
    /// The new desired state; `None`: unchanged.
    pub desired: Option<DesiredText>,
    /// New rollback setting; `None`: unchanged.
    pub disable_rollback: Option<bool>,
    /// New timeout; `None`: unchanged.
    pub timeout_mins: Option<i64>,
    /// New tags; `None`: unchanged.
    pub tags: Option<Vec<String>>,
    /// The credentials of the requesting user, if they replace the stored ones.
    pub credentials: Option<CredentialsId>,
    /// The parameters of the request.
    pub details: Details,
    /// The snapshot to make, or the data that an update adopts: it is stored together with the request.
    pub snapshot: Option<Snapshot>,
    /// Who requests it; `None`: an engine.
    pub author: Option<Author>,
    /// Refused with [`crate::Error::Changed`] unless the stack has this generation; `None`: any.
    pub if_generation: Option<i64>,
    /// Refused with [`crate::Error::Changed`] unless the tree of the stack has this version ([`crate::version_of`]);
    /// `None`: any.
    pub if_version: Option<String>,
    /// Current time.
    pub now: Timestamp,
}

impl StackRequest {
    /// The operation that it has begun, if it is not a part of another one; `stack`: after the request.
    pub(crate) fn operation(&self, stack: &Stack) -> Option<Operation> {
        let desired = match self.action {
            Action::Rollback => stack.previous.clone(),
            _ => self.desired.is_some().then(|| stack.desired.clone()),
        };
        Operation::of(stack, self.author.as_ref(), desired)
    }

    /// A request that does not change the desired state.
    pub fn new(action: Action, now: Timestamp) -> Self {
        Self {
            action,
            desired: None,
            disable_rollback: None,
            timeout_mins: None,
            tags: None,
            credentials: None,
            details: Details { own_number: action == Action::Rollback, ..Details::default() },
            snapshot: None,
            author: None,
            if_generation: None,
            if_version: None,
            now,
        }
    }

    /// A rollback of a request. `keeps_adopted`: it keeps the objects that were adopted.
    pub fn rollback(generation: i64, keeps_adopted: bool, now: Timestamp) -> Self {
        let new = Self::new(Action::Rollback, now);
        let details = Details { keep_objects: keeps_adopted, only_adopted: keeps_adopted, ..new.details };
        Self { details, if_generation: Some(generation), ..new }
    }

    /// A delete of a stack as it was read. An abandoned stack keeps its objects, whoever deletes it again: their data
    /// has been handed out, and another stack may have adopted them.
    pub fn delete(stack: &Stack, now: Timestamp) -> Self {
        Self {
            details: Details { keep_objects: stack.is_abandoned(), ..Details::default() },
            if_generation: Some(stack.generation),
            ..Self::new(Action::Delete, now)
        }
    }
}
