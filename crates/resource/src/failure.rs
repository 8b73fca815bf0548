//! Failures of operations on resources.

use std::fmt;

use kiln_value::Class;

/// The kind of a failure, which determines whether the engine retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The object does not exist (404).
    NotFound,
    /// A conflict with the current state (409): a create or delete is retried.
    Conflict,
    /// The service refuses the request because the object, or its parent, is being changed. Nothing has happened; the
    /// request is repeated until the timeout of the stack.
    Busy,
    /// Too many requests (429): retried later.
    OverLimit,
    /// The service rejected the request (other 4xx): no retry.
    Refused,
    /// No response, or one from a proxy (502, 503, 504): the request may have been executed, or may still be in
    /// progress.
    Unavailable,
    /// The service responded with 500: the call has ended, but its effect is unknown.
    ServerError,
    /// The request was not sent: it can be repeated.
    NotSent,
    /// The call broke off, and a repeated one would break off again (a plug-in that hangs). It may have been executed:
    /// the operation fails, and a later delete looks for the object of a create.
    BrokenOff,
    /// The object is in an error state (Heat's `ResourceInError`): it is deleted and created again.
    InError,
    /// Any other failure: no retry.
    Other,
}

/// A failed operation, with Heat's error class and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// Error class as clients see it in reasons: `ResourceInError`, `NotFound`, `BadRequest`, `ValueError` …
    pub class: Class,
    /// The text after the class.
    pub message: String,
    /// The delay before a retry that the service requests (`Retry-After`).
    pub retry_after: Option<std::time::Duration>,
}

impl Failure {
    /// A failure of a kind and class.
    pub fn new(kind: FailureKind, class: Class, message: impl Into<String>) -> Self {
        Self { kind, class, message: message.into(), retry_after: None }
    }

    /// A failure that is not retried.
    pub fn other(class: Class, message: impl Into<String>) -> Self {
        Self::new(FailureKind::Other, class, message)
    }

    /// `ResourceInError`: "Went to status ERROR due to "…"".
    pub fn in_error(status: &str, reason: &str) -> Self {
        let message = format!("Went to status {status} due to \"{reason}\"");
        Self::new(FailureKind::InError, Class::ResourceInError, message)
    }

    /// `ResourceUnknownStatus`: "`what` - Unknown status … due to "…"".
    pub fn unknown_status(what: &str, status: &str, reason: &str) -> Self {
        let message = format!("{what} - Unknown status {status} due to \"{reason}\"");
        Self::new(FailureKind::Other, Class::ResourceUnknownStatus, message)
    }

    /// Whether a later call may succeed.
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

    /// Whether the request may have been executed, or may still be.
    pub fn may_have_acted(&self) -> bool {
        matches!(self.kind, FailureKind::Unavailable | FailureKind::ServerError | FailureKind::BrokenOff)
    }

    /// Whether the object does not exist.
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
