//! Errors of the use cases.

use std::slice;

use kiln_identity::DelegateError;
use kiln_resource::{Action, PlanId};
use kiln_value::{Chain, Class, Diagnostic};

/// The errors of a stack to create: at least one. The first one determines class and text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{first}")]
pub struct Invalid {
    first: Diagnostic,
    all: Vec<Diagnostic>,
}

impl Invalid {
    /// `None` if there are no errors.
    pub fn of(all: Vec<Diagnostic>) -> Option<Self> {
        let first = all.first()?.clone();
        Some(Self { first, all })
    }
}

/// Sentences that a text lists.
const MOST_LISTED: usize = 20;

/// The first ones of many sentences, and the number of the others.
pub(crate) fn listed(mut sentences: Vec<String>) -> String {
    let more = sentences.len().saturating_sub(MOST_LISTED);
    sentences.truncate(MOST_LISTED);
    sentences.extend((more > 0).then(|| format!("and {more} more")));
    sentences.join("; ")
}

/// Errors of the use cases, with Heat's texts.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Validation found errors.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The template, the environment or a file cannot be read.
    #[error("{0}")]
    Unreadable(Diagnostic),
    /// A value in the request is invalid.
    #[error("Data supplied was not valid: {0}")]
    Value(String),
    /// The stack name is invalid.
    #[error(
        "Invalid stack name {0} must contain only alphanumeric or \"_-.\" characters, must start with alpha and must be \
         255 characters or less."
    )]
    StackName(String),
    /// An update without PATCH has no template.
    #[error("No template specified")]
    NoTemplate,
    /// The template at a URL cannot be read.
    #[error("Could not retrieve template: {0}")]
    TemplateUrl(String),
    /// A container of files cannot be read.
    #[error("Could not fetch files from container {0}, reason: {1}.")]
    NoContainer(String, String),
    /// The files of a container are too large.
    #[error("Total size of files to download ({size} bytes) exceeds maximum allowed ({limit} bytes).")]
    Download {
        /// The size of the container, or of what was read of it.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// Parameters that the new template declares as immutable have new values.
    #[error("The following parameters are immutable and may not be updated: {}", .0.join(", "))]
    ImmutableParameters(Vec<String>),
    /// A new template makes a hidden parameter visible and keeps its value.
    #[error("The parameter {0} is hidden in the current template: specify its value again, or keep it hidden.")]
    Revealed(String),
    /// A live root stack of the project has this name.
    #[error("The Stack ({0}) already exists.")]
    StackExists(String),
    /// The stack does not exist, or the caller cannot see it.
    #[error("The Stack ({0}) could not be found.")]
    NoStack(String),
    /// The stack has no such resource.
    #[error("The Resource ({resource}) could not be found in Stack {stack}.")]
    NoResource {
        /// Name of the resource.
        resource: String,
        /// Name of the stack.
        stack: String,
    },
    /// The resource of the template was not stored yet.
    #[error("The Resource ({0}) is not available.")]
    ResourceNotAvailable(String),
    /// The type of the resource does not support an action.
    #[error("{0} is not supported for resource.")]
    ActionNotSupported(String),
    /// There is no such hook.
    #[error("{0}")]
    Hook(String),
    /// Several resources of the stack have this physical ID.
    #[error("Multiple resources were found with the physical ID ({0}).")]
    AmbiguousPhysicalId(String),
    /// The resource type does not exist.
    #[error("The Resource Type ({0}) could not be found.")]
    NoResourceType(String),
    /// An object cannot be imported.
    #[error("{0}")]
    Import(String),
    /// Resources cannot be moved.
    #[error("{0}")]
    Refactor(String),
    /// What others have changed cannot be accepted.
    #[error("{0}")]
    Drift(String),
    /// The stack has a change set with this name.
    #[error("ChangeSet {0} already exists")]
    ChangeSetExists(String),
    /// The change set cannot be executed or deleted in its state.
    #[error("ChangeSet {name} cannot be executed or deleted in its current state ({execution:?})")]
    ChangeSetState {
        /// Its name.
        name: String,
        /// Its state.
        execution: crate::Execution,
    },
    /// The stack has no such snapshot.
    #[error("The Snapshot ({snapshot}) for Stack ({stack}) could not be found.")]
    NoSnapshot {
        /// The ID in the request.
        snapshot: String,
        /// Name of the stack.
        stack: String,
    },
    /// There is no such software config.
    #[error("Software config with id {0} not found")]
    NoConfig(String),
    /// There is no such software deployment.
    #[error("Deployment with id {0} not found")]
    NoDeployment(String),
    /// The software config has deployments.
    #[error("Software config with id {0} can not be deleted as it is referenced.")]
    ConfigReferenced(String),
    /// An input or output of a software config is invalid.
    #[error(transparent)]
    ConfigSchema(#[from] kiln_resource::InvalidSchema),
    /// Another object does not exist.
    #[error("{0} could not be found.")]
    NotFound(String),
    /// A feature is not supported, or not in this state.
    #[error("{0} is not supported.")]
    NotSupported(String),
    /// A limit is exceeded.
    #[error("Request limit exceeded: {0}")]
    Limit(String),
    /// The project has its maximum of operations in progress.
    #[error("This project has {0} operations in progress, its maximum: try again when one of them has ended.")]
    TooManyOperations(u64),
    /// The policy denies a resource type, or an action in a stack.
    #[error("You are not authorized to use {0}.")]
    Forbidden(String),
    /// The stack has a running action.
    #[error("Stack {stack} already has an action ({action}) in progress.")]
    Busy {
        /// Name of the stack.
        stack: String,
        /// The running action.
        action: Action,
    },
    /// The stack was changed since the plan was computed that the request refers to.
    #[error("The plan is out of date: the stack {0} has changed since.")]
    StalePlan(String),
    /// Changes need a plan.
    #[error(
        "Changes need a saved plan: save one (POST /plans, or kiln stack plan --save), and execute it (kiln stack apply). \
         An abandon and a restore cannot be planned: they need the policy rule plans:bypass."
    )]
    PlanRequired,
    /// A guard forbids it.
    #[error("{what} stays as it is: {why}.")]
    UnderGuard {
        /// What would be changed.
        what: String,
        /// The guard.
        why: String,
    },
    /// A service of the cloud does not lock an object, or does not unlock it.
    #[error("The object of the resource {path} of the stack {stack} cannot be {what}: {why}. {hint}")]
    Lock {
        /// The path of the resource below the stack.
        path: String,
        /// Name of the root stack.
        stack: String,
        /// `locked` or `unlocked`.
        what: &'static str,
        /// Why.
        why: String,
        /// What was done, and what to do.
        hint: String,
    },
    /// The user cannot approve the plan.
    #[error("You cannot approve the plan {plan}: {why}.")]
    Approval {
        /// Its ID.
        plan: PlanId,
        /// Why.
        why: &'static str,
    },
    /// The plan has too few approvals.
    #[error(
        "The plan {plan} has {given} of the {needed} approvals that it needs, of others than those who made or execute it."
    )]
    Unapproved {
        /// Its ID.
        plan: PlanId,
        /// The approvals that it has.
        given: usize,
        /// The approvals that it needs.
        needed: usize,
    },
    /// The plan cannot be executed or rejected in its state.
    #[error("The plan {plan} cannot be used: {why}.")]
    PlanState {
        /// Its ID.
        plan: PlanId,
        /// Why.
        why: &'static str,
    },
    /// The plan would be another one today, or others have changed its objects.
    #[error("The plan {plan} is out of date, and nothing was changed: {what}.")]
    MovedPlan {
        /// Its ID.
        plan: PlanId,
        /// What has moved.
        what: String,
    },
    /// The pre-flight of a plan has failed.
    #[error("The plan {plan} would fail, and nothing was changed: {what}.")]
    FailedPreflight {
        /// Its ID.
        plan: PlanId,
        /// What would fail.
        what: String,
    },
    /// There was a concurrent request.
    #[error("The stack was changed by another request; try again.")]
    Changed,
    /// The credentials of the stack could not be created.
    #[error(transparent)]
    Delegate(#[from] DelegateError),
    /// The database does not answer; if the outcome of a change is unknown, the text says so.
    #[error("{0}")]
    Unavailable(String),
    /// The store failed, or its data is invalid.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    /// Heat's class of the error; `None` if Heat has no class for it.
    pub fn class(&self) -> Option<Class> {
        let class = match self {
            Self::Invalid(invalid) => invalid.first.class.clone(),
            Self::Unreadable(error) => error.class.clone(),
            Self::Value(_) => Class::Invalid,
            Self::StackName(_) | Self::Revealed(_) => Class::StackValidationFailed,
            Self::ImmutableParameters(_) => Class::ImmutableParameterModified,
            Self::StackExists(_) => Class::StackExists,
            Self::NoStack(_) | Self::NoResourceType(_) => Class::EntityNotFound,
            Self::NoResource { .. } => Class::ResourceNotFound,
            Self::ResourceNotAvailable(_) => Class::ResourceNotAvailable,
            Self::ActionNotSupported(_) => Class::ResourceActionNotSupported,
            Self::Hook(_) => Class::InvalidBreakPointHook,
            Self::AmbiguousPhysicalId(_) => Class::PhysicalResourceIDAmbiguity,
            Self::NoSnapshot { .. } => Class::SnapshotNotFound,
            Self::NotFound(_) | Self::NoContainer(..) | Self::NoConfig(_) | Self::NoDeployment(_) => Class::NotFound,
            Self::Download { .. } => Class::DownloadLimitExceeded,
            Self::ConfigReferenced(_) => Class::InvalidRestrictedAction,
            Self::ConfigSchema(_) => Class::ValueError,
            Self::NotSupported(_) => Class::NotSupported,
            Self::Limit(_) => Class::RequestLimitExceeded,
            Self::TooManyOperations(_) => Class::HTTPTooManyRequests,
            Self::Forbidden(_) | Self::Approval { .. } => Class::Forbidden,
            Self::Busy { .. } => Class::ActionInProgress,
            Self::Delegate(DelegateError::Missing(_)) => Class::MissingCredentialError,
            Self::Delegate(DelegateError::Refused(_) | DelegateError::Taken) => Class::AuthorizationFailure,
            Self::NoTemplate
            | Self::TemplateUrl(_)
            | Self::Import(_)
            | Self::Refactor(_)
            | Self::Drift(_)
            | Self::ChangeSetExists(_)
            | Self::ChangeSetState { .. }
            | Self::Changed
            | Self::StalePlan(_)
            | Self::PlanRequired
            | Self::UnderGuard { .. }
            | Self::Lock { .. }
            | Self::Unapproved { .. }
            | Self::PlanState { .. }
            | Self::MovedPlan { .. }
            | Self::FailedPreflight { .. }
            | Self::Delegate(DelegateError::Unavailable(_))
            | Self::Unavailable(_)
            | Self::Internal(_) => return None,
        };
        Some(class)
    }

    /// The text as the API returns it.
    pub fn on_the_wire(&self) -> String {
        self.diagnostics().first().map_or_else(|| self.to_string(), Diagnostic::on_the_wire)
    }

    /// Additional data, one entry per error.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Invalid(invalid) => &invalid.all,
            Self::Unreadable(error) => slice::from_ref(error),
            _ => &[],
        }
    }
}

impl From<Diagnostic> for Error {
    fn from(error: Diagnostic) -> Self {
        Self::Unreadable(error)
    }
}

impl From<kiln_store::Error> for Error {
    fn from(error: kiln_store::Error) -> Self {
        use kiln_store::Error as Stored;
        match error {
            Stored::NameTaken(name) => Self::StackExists(name),
            taken @ Stored::ObjectTaken { .. } => Self::Import(format!("Nothing was imported: {taken}.")),
            Stored::NotFound(what) => Self::NotFound(what),
            Stored::Referenced(id) => Self::ConfigReferenced(id),
            Stored::Changed(_) => Self::Changed,
            Stored::PlanUsed(plan) => Self::PlanState { plan, why: "another request has used it, or it has expired" },
            Stored::Invalid(why) => Self::Unreadable(Diagnostic::invalid(why.to_string())),
            Stored::Unavailable { ref why, .. } => {
                // A library's text may contain addresses: it is for the log only.
                tracing::error!(why = Chain(&**why).to_string(), "the database is not available");
                Self::Unavailable(error.to_string())
            }
            error => Self::Internal(error.to_string()),
        }
    }
}
