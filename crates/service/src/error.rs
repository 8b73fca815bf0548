//! Why a use case refused or failed.

use std::borrow::Cow;
use std::slice;

use kiln_identity::DelegateError;
use kiln_resource::Action;
use kiln_value::Diagnostic;

/// Everything that is wrong with a stack that is to be: at least one error. The first decides class and text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{first}")]
pub struct Invalid {
    first: Diagnostic,
    all: Vec<Diagnostic>,
}

impl Invalid {
    /// `None` if nothing is wrong.
    pub fn of(all: Vec<Diagnostic>) -> Option<Self> {
        let first = all.first()?.clone();
        Some(Self { first, all })
    }
}

/// Why a use case refused or failed. The texts are Heat's.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Validation found errors.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The template, the environment or a file cannot be read.
    #[error("{0}")]
    Unreadable(Diagnostic),
    /// A value of the request that no stack can have.
    #[error("Data supplied was not valid: {0}")]
    Value(String),
    /// A name that no stack can have.
    #[error(
        "Invalid stack name {0} must contain only alphanumeric or \"_-.\" characters, must start with alpha and must be \
         255 characters or less."
    )]
    StackName(String),
    /// An update that replaces all says no template.
    #[error("No template specified")]
    NoTemplate,
    /// Parameters that the new template declares immutable have other values.
    #[error("The following parameters are immutable and may not be updated: {}", .0.join(", "))]
    ImmutableParameters(Vec<String>),
    /// A new template shows a hidden parameter whose value would stay as it is.
    #[error("The parameter {0} was hidden until now: give its value again, or keep it hidden.")]
    Revealed(String),
    /// A live root stack of the project has this name.
    #[error("The Stack ({0}) already exists.")]
    StackExists(String),
    /// There is no such stack for the caller.
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
    /// Several resources of the stack have an object with this id.
    #[error("Multiple resources were found with the physical ID ({0}).")]
    AmbiguousPhysicalId(String),
    /// There is no such resource type.
    #[error("The Resource Type ({0}) could not be found.")]
    NoResourceType(String),
    /// Something else is not there.
    #[error("{0} could not be found.")]
    NotFound(String),
    /// A feature, or a state in which it cannot be used.
    #[error("{0} is not supported.")]
    NotSupported(String),
    /// A limit is reached.
    #[error("Request limit exceeded: {0}")]
    Limit(String),
    /// The policy forbids a resource type, or something in a stack.
    #[error("You are not authorized to use {0}.")]
    Forbidden(String),
    /// The stack has not finished what it does.
    #[error("Stack {stack} already has an action ({action}) in progress.")]
    Busy {
        /// Name of the stack.
        stack: String,
        /// What it does.
        action: Action,
    },
    /// Another request came between.
    #[error("The stack was changed by another request meanwhile; try again.")]
    Changed,
    /// Kiln does not have this yet.
    #[error("{0} is not implemented by Kiln yet.")]
    NotImplemented(String),
    /// The stack got no credentials.
    #[error(transparent)]
    Delegate(#[from] DelegateError),
    /// The store failed, or what it holds cannot be used.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    /// The class by which Heat's clients know the error; `None` if Heat has no class for it.
    pub fn class(&self) -> Option<Cow<'static, str>> {
        let class = match self {
            Self::Invalid(invalid) => return Some(invalid.first.class.clone()),
            Self::Unreadable(error) => return Some(error.class.clone()),
            Self::Value(_) => "Invalid",
            Self::StackName(_) | Self::Revealed(_) => "StackValidationFailed",
            Self::ImmutableParameters(_) => "ImmutableParameterModified",
            Self::StackExists(_) => "StackExists",
            Self::NoStack(_) | Self::NoResourceType(_) => "EntityNotFound",
            Self::NoResource { .. } => "ResourceNotFound",
            Self::AmbiguousPhysicalId(_) => "PhysicalResourceIDAmbiguity",
            Self::NotFound(_) => "NotFound",
            Self::NotSupported(_) => "NotSupported",
            Self::Limit(_) => "RequestLimitExceeded",
            Self::Forbidden(_) => "Forbidden",
            Self::Busy { .. } => "ActionInProgress",
            Self::Delegate(DelegateError::Missing(_)) => "MissingCredentialError",
            Self::Delegate(DelegateError::Refused(_) | DelegateError::Taken) => "AuthorizationFailure",
            Self::NoTemplate
            | Self::Changed
            | Self::NotImplemented(_)
            | Self::Delegate(DelegateError::Unavailable(_))
            | Self::Internal(_) => return None,
        };
        Some(class.into())
    }

    /// What Kiln knows besides: one entry for each thing that is wrong.
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
            Stored::NotFound(what) => Self::NotFound(what),
            Stored::Changed(_) => Self::Changed,
            Stored::Invalid(why) => Self::Unreadable(Diagnostic::new("StackValidationFailed", why)),
            error => Self::Internal(error.to_string()),
        }
    }
}
