//! Error responses with Heat's status, class and text.

use std::fmt;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};
use kiln_identity::DelegateError;
use kiln_value::{Class, Diagnostic, Value, value};
use kiln_web::{Reason, TooMany};

use crate::http::reply;

/// An error response in the format of Heat's fault middleware (`openstack_api` of reference/errors.json).
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    /// HTTP status.
    pub status: StatusCode,
    /// Error class that clients use: `StackExists`.
    pub class: Class,
    /// The text; `None` if Heat shows none.
    pub message: Option<String>,
    /// Kiln's additional data, one entry per error; sent as an extra key.
    pub diagnostics: Vec<Diagnostic>,
}

/// When a client may ask again after a 503 or 429.
const RETRY_SECONDS: &str = "5";

/// The status for a class.
fn status(class: &Class) -> StatusCode {
    match class {
        Class::AttributeError
        | Class::CircularDependencyException
        | Class::DownloadLimitExceeded
        | Class::HTTPBadRequest
        | Class::ImmutableParameterModified
        | Class::IncompatibleObjectVersion
        | Class::Invalid
        | Class::InvalidBreakPointHook
        | Class::InvalidSchemaError
        | Class::InvalidTemplateReference
        | Class::InvalidTemplateSection
        | Class::InvalidTemplateVersion
        | Class::MissingCredentialError
        | Class::NotSupported
        | Class::ObjectActionError
        | Class::ObjectFieldInvalid
        | Class::OrphanedObjectError
        | Class::PhysicalResourceIDAmbiguity
        | Class::PhysicalResourceNameAmbiguity
        | Class::PropertyUnspecifiedError
        | Class::ReadOnlyFieldError
        | Class::RequestLimitExceeded
        | Class::ResourceActionNotSupported
        | Class::ResourcePropertyConflict
        | Class::ResourceTypeUnavailable
        | Class::StackValidationFailed
        | Class::UnknownUserParameter
        | Class::UnsupportedObjectError
        | Class::UserParameterMissing
        | Class::ValueError => StatusCode::BAD_REQUEST,
        Class::Forbidden | Class::HTTPForbidden | Class::InvalidTenant | Class::NotAuthorized => StatusCode::FORBIDDEN,
        Class::EntityNotFound
        | Class::HTTPNotFound
        | Class::NotFound
        | Class::ResourceNotAvailable
        | Class::ResourceNotFound
        | Class::SnapshotNotFound => StatusCode::NOT_FOUND,
        Class::HTTPRequestTimeout => StatusCode::REQUEST_TIMEOUT,
        Class::ActionInProgress | Class::HTTPConflict | Class::StackExists => StatusCode::CONFLICT,
        Class::HTTPMethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Class::HTTPNotImplemented => StatusCode::NOT_IMPLEMENTED,
        Class::HTTPServiceUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        Class::HTTPTooManyRequests => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Whether it is one of Python's own exception classes: their texts are not shown to clients.
fn is_silent(class: &Class) -> bool {
    matches!(
        class,
        Class::AssertionError
            | Class::AttributeError
            | Class::ExceptionGroup
            | Class::ForcedCancel
            | Class::IndexError
            | Class::KeyError
            | Class::NoActionRequired
            | Class::NotImplementedError
            | Class::OSError
            | Class::PollDelay
            | Class::RuntimeError
            | Class::TypeError
            | Class::UpdateInProgress
            | Class::UpdateReplace
            | Class::ValueError
    )
}

impl ApiError {
    /// An error of a class, with Heat's status for the class.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        let message = (!is_silent(&class)).then(|| message.into());
        Self { status: status(&class), class, message, diagnostics: Vec::new() }
    }

    /// An invalid request: 400 `HTTPBadRequest`.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Class::HTTPBadRequest, message)
    }

    /// An invalid request that Heat does not explain.
    pub fn malformed() -> Self {
        Self::bad_request(explanation(StatusCode::BAD_REQUEST))
    }

    /// The path does not support this method: 405.
    pub fn method_not_allowed() -> Self {
        Self::new(Class::HTTPMethodNotAllowed, explanation(StatusCode::METHOD_NOT_ALLOWED))
    }

    /// An unknown object: 404 `HTTPNotFound`.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Class::HTTPNotFound, message)
    }

    /// An unsupported feature or state: 400 `NotSupported`.
    pub fn not_supported(feature: &str) -> Self {
        Self::new(Class::NotSupported, format!("{feature} is not supported."))
    }

    /// A limit is exceeded: 400 `RequestLimitExceeded`.
    pub fn limit(message: &str) -> Self {
        Self::new(Class::RequestLimitExceeded, format!("Request limit exceeded: {message}"))
    }

    /// The project in the URL is not that of the caller: 403 `HTTPForbidden`.
    pub fn foreign_project() -> Self {
        Self::new(Class::HTTPForbidden, explanation(StatusCode::FORBIDDEN))
    }

    /// The stacks of the project belong to a Heat.
    pub fn of_heat() -> Self {
        Self::new(Class::HTTPServiceUnavailable, kiln_service::OF_HEAT)
    }

    /// The operator lets requests read, but not change: 503.
    pub fn maintenance(text: String) -> Self {
        Self::new(Class::HTTPServiceUnavailable, text)
    }

    /// The budget of the client is empty: 429.
    pub fn too_many(too_many: TooMany) -> Response {
        let mut response = Self::new(Class::HTTPTooManyRequests, too_many.to_string()).into_response();
        response.headers_mut().insert(RETRY_AFTER, too_many.seconds().into());
        response
    }

    /// The audit event of the request cannot be written: 503.
    pub fn unaudited() -> Self {
        Self::new(Class::HTTPServiceUnavailable, kiln_audit::Refused.to_string())
    }

    /// The body was not received in time: 408.
    pub fn too_slow() -> Self {
        Self::new(Class::HTTPRequestTimeout, "The body of the request was not received in time.")
    }

    /// The errors of an upload; the message has a line for each, with its place.
    pub fn of_several(diagnostics: Vec<Diagnostic>) -> Self {
        let line = |error: &Diagnostic| {
            let file = error.file.as_ref().map(|file| format!("{file}:")).unwrap_or_default();
            match error.span.map(|span| span.start) {
                Some(at) => format!("{file}{}:{}: {error}", at.line, at.column),
                None if file.is_empty() => error.to_string(),
                None => format!("{file} {error}"),
            }
        };
        let lines: Vec<String> = diagnostics.iter().map(line).collect();
        Self { diagnostics, ..Self::new(Class::StackValidationFailed, lines.join("\n")) }
    }

    /// An internal error; the cause is logged but not sent to the client.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        tracing::error!(%cause, "a request failed");
        Self::new(Class::HTTPInternalServerError, explanation(StatusCode::INTERNAL_SERVER_ERROR))
    }

    /// The body.
    pub fn body(&self) -> Value {
        let mut error = value!({ "type": (self.class.name()), "traceback": null });
        if let Some(entries) = error.as_map_mut() {
            if let Some(message) = &self.message {
                entries.insert("message".to_owned(), message.into());
            }
            if !self.diagnostics.is_empty() {
                entries.insert("diagnostics".to_owned(), self.diagnostics.iter().map(diagnostic).collect());
            }
        }
        value!({
            "code": (self.status.as_u16()),
            "title": (title(self.status)),
            "explanation": (explanation(self.status)),
            "error": error,
        })
    }
}

/// A diagnostic in the extra key: `line` and `column` start at 1 and are null if unknown.
fn diagnostic(diagnostic: &Diagnostic) -> Value {
    let start = diagnostic.span.map(|span| span.start);
    value!({
        "message": (diagnostic.to_string()),
        "path": (diagnostic.path.to_string()),
        "file": (diagnostic.file.clone()),
        "line": (start.map(|at| at.line)),
        "column": (start.map(|at| at.column)),
        "hints": (diagnostic.hints.clone()),
        "parameter": (diagnostic.parameter()),
        "name": (diagnostic.unknown_name()),
        "nested": (diagnostic.nested.as_ref().map(|place| value!({
            "file": (&place.file),
            "path": (place.path.to_string()),
            "message": (&place.message),
        }))),
    })
}

/// The reason phrase of webob.
pub(crate) fn title(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("Error")
}

/// The explanation of webob.
fn explanation(status: StatusCode) -> &'static str {
    match status {
        StatusCode::FORBIDDEN => "Access was denied to this resource.",
        StatusCode::NOT_FOUND => "The resource could not be found.",
        StatusCode::CONFLICT => "There was a conflict when trying to complete your request.",
        StatusCode::SERVICE_UNAVAILABLE => "The server is currently unavailable. Please try again at a later time.",
        status if status.is_server_error() => {
            "The server has either erred or is incapable of performing the requested operation."
        }
        _ => "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    }
}

/// `StackExists: The Stack (web) already exists.`
impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.message {
            Some(message) => write!(f, "{}: {message}", self.class.name()),
            None => f.write_str(self.class.name()),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = reply::json_with(self.status, &self.body());
        response.extensions_mut().insert(Reason(self.to_string()));
        if matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
        }
        response
    }
}

impl From<Diagnostic> for ApiError {
    fn from(diagnostic: Diagnostic) -> Self {
        let error = Self::new(diagnostic.class.clone(), diagnostic.on_the_wire());
        Self { diagnostics: vec![diagnostic], ..error }
    }
}

impl From<Box<Diagnostic>> for ApiError {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        (*diagnostic).into()
    }
}

impl From<kiln_service::Error> for ApiError {
    fn from(error: kiln_service::Error) -> Self {
        use kiln_service::Error;
        if let Some(class) = error.class() {
            return Self { diagnostics: error.diagnostics().to_vec(), ..Self::new(class, error.on_the_wire()) };
        }
        match error {
            Error::Changed
            | Error::StalePlan(_)
            | Error::PlanState { .. }
            | Error::MovedPlan { .. }
            | Error::FailedPreflight { .. }
            | Error::PlanRequired
            | Error::UnderGuard { .. }
            | Error::Drift(_)
            | Error::Refactor(_)
            | Error::Import(_)
            | Error::Lock { .. }
            | Error::Unapproved { .. } => Self::new(Class::HTTPConflict, error.to_string()),
            Error::Delegate(DelegateError::Unavailable(_)) => {
                Self::new(Class::HTTPServiceUnavailable, error.to_string())
            }
            Error::Unavailable(text) => Self::new(Class::HTTPServiceUnavailable, text),
            Error::NoTemplate | Error::TemplateUrl(_) => Self::bad_request(error.to_string()),
            error => Self::internal(error),
        }
    }
}

impl From<kiln_store::Error> for ApiError {
    fn from(error: kiln_store::Error) -> Self {
        kiln_service::Error::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Expected {
        http_status: u16,
        http_title: String,
        message_shown: bool,
    }

    #[test]
    fn a_database_that_does_not_answer_is_503_and_says_what_may_have_happened() {
        for (may_have_happened, text) in [
            (false, "the database does not answer"),
            (true, "the database does not answer; the change may have been made"),
        ] {
            let error = ApiError::from(kiln_store::Error::Unavailable { why: "10.0.0.1".into(), may_have_happened });
            assert_eq!(error.message.as_deref(), Some(text));
            let response = error.into_response();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers()[RETRY_AFTER], "5");
        }
    }

    #[test]
    fn every_class_of_the_reference() {
        let text = include_str!("../tests/data/error_classes.json");
        let classes: BTreeMap<String, Expected> = serde_json::from_str(text).unwrap();
        assert!(classes.len() > 90);
        for (name, expected) in classes {
            let error = ApiError::new(Class::of(name.clone()), "text");
            assert_eq!(error.status.as_u16(), expected.http_status, "{name}");
            assert_eq!(title(error.status), expected.http_title, "{name}");
            assert_eq!(error.message.is_some(), expected.message_shown, "{name}");
        }
    }
}
