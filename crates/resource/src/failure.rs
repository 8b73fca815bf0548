//! Failures of operations on resources.

use std::fmt;

/// What the engine has to know of a failure to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The service says that it does not exist (404).
    NotFound,
    /// The service says that it conflicts with something now (409): worth a retry of a create or delete.
    Conflict,
    /// The service refuses the request because the object, or one that it belongs to, is being changed: nothing has
    /// happened, and the request is repeated until the timeout of the stack.
    Busy,
    /// The service says that it is asked too often (429): worth a later retry.
    OverLimit,
    /// The service refused the request (other 4xx): no retry.
    Refused,
    /// The service did not answer, or something before it did (502, 503, 504): what was asked for may have happened, or
    /// may still be under way.
    Unavailable,
    /// The service answered 500: the call is over, but what it did before is not known.
    ServerError,
    /// The request did not reach the service: nothing has happened, and it may be repeated.
    NotSent,
    /// The object went to an error state (Heat's `ResourceInError`): delete and create again.
    InError,
    /// Anything else: no retry.
    Other,
}

/// A failed operation: Heat's error class and text, and what kind of failure it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the engine may do about it.
    pub kind: FailureKind,
    /// Error class as clients see it in reasons: `ResourceInError`, `NotFound`, `BadRequest`, `ValueError` …
    pub class: String,
    /// The text behind the class.
    pub message: String,
    /// How long the service asks to wait before it is called again (`Retry-After`).
    pub retry_after: Option<std::time::Duration>,
}

impl Failure {
    /// A failure of a kind and class.
    pub fn new(kind: FailureKind, class: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, class: class.into(), message: message.into(), retry_after: None }
    }

    /// A failure that no retry mends.
    pub fn other(class: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(FailureKind::Other, class, message)
    }

    /// `ResourceInError`: "Went to status ERROR due to "…"".
    pub fn in_error(status: &str, reason: &str) -> Self {
        let message = format!("Went to status {status} due to \"{reason}\"");
        Self::new(FailureKind::InError, "ResourceInError", message)
    }

    /// `ResourceUnknownStatus`: "`what` - Unknown status … due to "…"".
    pub fn unknown_status(what: &str, status: &str, reason: &str) -> Self {
        let message = format!("{what} - Unknown status {status} due to \"{reason}\"");
        Self::new(FailureKind::Other, "ResourceUnknownStatus", message)
    }

    /// Whether a later call may succeed where this one was not answered, or came too early.
    pub fn is_passing(&self) -> bool {
        matches!(
            self.kind,
            FailureKind::Unavailable
                | FailureKind::ServerError
                | FailureKind::NotSent
                | FailureKind::OverLimit
                | FailureKind::Busy
        )
    }

    /// Whether the object is not there (any more).
    pub fn is_not_found(&self) -> bool {
        self.kind == FailureKind::NotFound
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

impl std::error::Error for Failure {}
