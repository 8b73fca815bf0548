//! A stack's row, and what may be asked of it.

use jiff::Timestamp;
use kiln_resource::{Action, State, Status};

use crate::{CredentialsId, Desired, DesiredText, ResourceId, StackId};

/// The resource that a nested stack stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Stack of the resource.
    pub stack: StackId,
    /// The resource's row.
    pub resource: ResourceId,
    /// Its logical name.
    pub resource_name: String,
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
    /// The resource it stands for, if nested.
    pub parent: Option<Parent>,
    /// The root of its tree: itself, if not nested.
    pub root: StackId,
    /// 0 for a root stack.
    pub depth: u32,
    /// Action and status.
    pub state: State,
    /// Reason of the status.
    pub reason: String,
    /// What it should be.
    pub desired: Desired,
    /// What it was when it was last COMPLETE by create or update, or what it was before the first update of a stack
    /// that never was: what a rollback returns to. `None`: nothing.
    pub previous: Option<Desired>,
    /// Number of the last request; grows by one with each.
    pub generation: i64,
    /// Number of the last request that came to its end. Work is to do while it is below `generation`.
    pub settled: i64,
    /// Whether a failure is left as it is.
    pub disable_rollback: bool,
    /// Minutes an action may take; `None`: the operator's default.
    pub timeout_mins: Option<i64>,
    /// Tags.
    pub tags: Vec<String>,
    /// Name of the user who made it (`stack_owner`).
    pub username: String,
    /// Id of that user.
    pub user_id: String,
    /// Credentials of the tree, kept at the root.
    pub credentials: Option<CredentialsId>,
    /// Project of the stack's users.
    pub user_project: Option<String>,
    /// How many messages others ever sent to it: whoever sees it grow looks into the inbox.
    pub messages: i64,
    /// When it was asked for.
    pub created: Timestamp,
    /// When a later action was last asked for.
    pub updated: Option<Timestamp>,
    /// When it was gone.
    pub deleted: Option<Timestamp>,
}

impl Stack {
    /// A new stack as it begins.
    pub(crate) fn started(new: &NewStack) -> Self {
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
        }
    }

    /// Whether a request has not come to its end.
    pub fn is_pending(&self) -> bool {
        self.settled < self.generation
    }
}

/// The reason of a state in which an action has just begun.
pub(crate) fn started_text(action: Action) -> String {
    format!("Stack {action} started")
}

/// A stack to make. It starts at generation 1 with `CREATE_IN_PROGRESS` and the event "Stack CREATE started".
#[derive(Clone, Debug, PartialEq)]
pub struct NewStack {
    /// Its id.
    pub id: StackId,
    /// Its name.
    pub name: String,
    /// Project id.
    pub project: String,
    /// The resource it stands for, if nested; then `root` and `depth` follow from that stack.
    pub parent: Option<Parent>,
    /// The root: itself, if not nested.
    pub root: StackId,
    /// 0 for a root stack.
    pub depth: u32,
    /// The first action: CREATE or ADOPT.
    pub action: Action,
    /// What it should be.
    pub desired: DesiredText,
    /// Whether a failure is left as it is.
    pub disable_rollback: bool,
    /// Minutes an action may take.
    pub timeout_mins: Option<i64>,
    /// Tags.
    pub tags: Vec<String>,
    /// Name of the user.
    pub username: String,
    /// Id of the user.
    pub user_id: String,
    /// Credentials of the tree.
    pub credentials: Option<CredentialsId>,
    /// Project of the stack's users.
    pub user_project: Option<String>,
    /// Now.
    pub now: Timestamp,
}

/// A request to an existing stack. It makes the stack `<action>_IN_PROGRESS` with the reason and event
/// `Stack <ACTION> started`, and its generation one higher.
#[derive(Clone, Debug, PartialEq)]
pub struct StackRequest {
    /// What to do: UPDATE, DELETE, ROLLBACK, SUSPEND, RESUME, CHECK …
    pub action: Action,
    /// What it should be from now on; `None`: as it is.
    pub desired: Option<DesiredText>,
    /// Changed settings; `None`: as they are.
    pub disable_rollback: Option<bool>,
    /// Changed time limit; `None`: as it is.
    pub timeout_mins: Option<i64>,
    /// Changed tags; `None`: as they are.
    pub tags: Option<Vec<String>>,
    /// The credentials of the user who asks, if they replace the stored ones.
    pub credentials: Option<CredentialsId>,
    /// Refused with [`crate::Error::Changed`] unless the stack's generation is this; `None`: any.
    pub if_generation: Option<i64>,
    /// Now.
    pub now: Timestamp,
}

impl StackRequest {
    /// A request for an action that changes nothing of what the stack should be.
    pub fn new(action: Action, now: Timestamp) -> Self {
        Self {
            action,
            desired: None,
            disable_rollback: None,
            timeout_mins: None,
            tags: None,
            credentials: None,
            if_generation: None,
            now,
        }
    }
}
