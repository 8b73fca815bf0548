//! Errors with the codes and statuses of the reference (`cfn_api` of reference/errors.json).

use http::StatusCode;
use kiln_identity::{DelegateError, SignatureError};
use kiln_service::Error;
use kiln_value::{Chain, Class, Diagnostic};
use kiln_web::{NotPassed, TooMany};

/// An error response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// HTTP status.
    pub(crate) status: StatusCode,
    /// The code that clients use: `AlreadyExists`.
    pub(crate) code: &'static str,
    /// The text.
    pub(crate) message: String,
}

/// Code, status and explanation.
struct Kind(&'static str, u16, &'static str);

const ACCESS_DENIED: Kind = Kind("AccessDenied", 403, "User is not authorized to perform action");
const ALREADY_EXISTS: Kind = Kind("AlreadyExists", 400, "Resource with the name requested already exists");
const BUSY: Kind = Kind("InvalidAction", 400, "Cannot perform action on stack while other actions are in progress");
const COMBINATION: Kind = Kind("InvalidParameterCombination", 400, "Incompatible parameters were used together");
const INCOMPLETE: Kind = Kind("IncompleteSignature", 400, "The request signature does not conform to AWS standards");
const INTERNAL: Kind = Kind("InternalFailure", 500, "The request processing has failed due to an internal error");
const INVALID_ACTION: Kind = Kind("InvalidAction", 400, "The action or operation requested is invalid");
const INVALID_VALUE: Kind = Kind("InvalidParameterValue", 400, "A bad or out-of-range value was supplied");
const LIMIT: Kind = Kind("RequestLimitExceeded", 400, "Payload exceeds maximum allowed size");
const MISSING: Kind = Kind("MissingParameter", 400, "A mandatory input parameter is missing");
const MISSING_KEY: Kind =
    Kind("MissingAuthenticationToken", 403, "Does not contain a valid AWS Access Key or certificate");
const SIGNATURE: Kind =
    Kind("SignatureDoesNotMatch", 403, "The request signature we calculated does not match the signature you provided");
const UNAVAILABLE: Kind = Kind("ServiceUnavailable", 503, "Service temporarily unavailable");
const UNKNOWN_KEY: Kind = Kind("InvalidClientTokenId", 403, "The certificate or AWS Key ID provided does not exist");

impl Fault {
    fn new(Kind(code, status, explanation): Kind, message: Option<&str>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let message = match message {
            Some(message) => format!("{explanation}:{message}"),
            None => explanation.to_owned(),
        };
        Self { status, code, message }
    }

    /// Who caused it.
    pub(crate) fn who(&self) -> &'static str {
        if self.status.is_server_error() { "Server" } else { "Sender" }
    }

    pub(crate) fn denied(message: &str) -> Self {
        Self::new(ACCESS_DENIED, Some(message))
    }

    pub(crate) fn combination(message: &str) -> Self {
        Self::new(COMBINATION, Some(message))
    }

    pub(crate) fn invalid_action(message: Option<&str>) -> Self {
        Self::new(INVALID_ACTION, message)
    }

    pub(crate) fn invalid(message: &str) -> Self {
        Self::new(INVALID_VALUE, Some(message))
    }

    pub(crate) fn missing(message: &str) -> Self {
        Self::new(MISSING, Some(message))
    }

    pub(crate) fn limit(message: &str) -> Self {
        Self::new(LIMIT, Some(message))
    }

    pub(crate) fn unavailable() -> Self {
        Self::new(UNAVAILABLE, None)
    }

    /// The operator lets requests read, but not change.
    pub(crate) fn maintenance(text: &str) -> Self {
        Self::new(UNAVAILABLE, Some(text))
    }

    /// The budget of the client is empty: the code at which the SDKs of AWS wait and repeat the request.
    pub(crate) fn too_many(too_many: TooMany) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code: "Throttling", message: too_many.to_string() }
    }

    /// The stacks of the project belong to a Heat.
    pub(crate) fn of_heat() -> Self {
        Self::new(UNAVAILABLE, Some(kiln_service::OF_HEAT))
    }

    /// The cause is logged but not sent to the client.
    pub(crate) fn internal(cause: impl std::fmt::Display) -> Self {
        tracing::error!(%cause, "a request failed");
        Self::new(INTERNAL, None)
    }

    /// The code that AWS uses where its tools depend on it.
    pub(crate) fn validation(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code: "ValidationError", message: message.into() }
    }

    /// The token was used for another request.
    pub(crate) fn token_exists(token: &str) -> Self {
        let message = format!("The token {token} was used for a request with other parameters");
        Self { code: "TokenAlreadyExistsException", ..Self::validation(message) }
    }

    /// The request with the token is being processed.
    pub(crate) fn in_progress(token: &str) -> Self {
        let message = format!("The request with the token {token} is being processed: try again later");
        Self { code: "OperationInProgressException", ..Self::validation(message) }
    }

    /// A change set does not exist.
    pub(crate) fn no_change_set(name: &str) -> Self {
        let message = format!("ChangeSet [{name}] does not exist");
        Self { status: StatusCode::NOT_FOUND, code: "ChangeSetNotFound", message }
    }

    /// A scan does not exist, or has expired.
    pub(crate) fn no_scan(id: &str) -> Self {
        Self { code: "ResourceScanNotFound", ..Self::validation(format!("Resource scan {id} does not exist")) }
    }

    /// A generated template does not exist, or has expired.
    pub(crate) fn no_generated_template(name: &str) -> Self {
        let message = format!("Generated template {name} does not exist");
        Self { status: StatusCode::NOT_FOUND, code: "GeneratedTemplateNotFound", message }
    }

    /// A refactoring of stacks does not exist, or has expired.
    pub(crate) fn no_stack_refactor(id: &str) -> Self {
        let message = format!("Stack refactor {id} does not exist");
        Self { status: StatusCode::NOT_FOUND, code: "StackRefactorNotFoundException", message }
    }

    /// The name is taken.
    pub(crate) fn name_exists(name: &str) -> Self {
        Self { code: "AlreadyExistsException", ..Self::validation(format!("{name} already exists")) }
    }

    /// There are too many of something.
    pub(crate) fn too_much(message: impl Into<String>) -> Self {
        Self { code: "LimitExceededException", ..Self::validation(message) }
    }

    /// A stack does not exist. Waiters of boto3 and `aws cloudformation deploy` depend on the code and the text.
    pub(crate) fn no_stack(name: &str) -> Self {
        Self::validation(format!("Stack with id {name} does not exist"))
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        if let Error::NoStack(name) = &error {
            return Self::no_stack(name);
        }
        if let Some(class) = error.class() {
            return Self::of_class(&class, &error.on_the_wire());
        }
        match error {
            Error::TemplateUrl(_) => Self::invalid(&text),
            Error::Changed
            | Error::StalePlan(_)
            | Error::PlanState { .. }
            | Error::MovedPlan { .. }
            | Error::FailedPreflight { .. }
            | Error::PlanRequired
            | Error::Unapproved { .. } => Self::new(BUSY, Some(&text)),
            Error::Import(_) | Error::Refactor(_) | Error::Drift(_) | Error::UnderGuard { .. } | Error::Lock { .. } => {
                Self::validation(text)
            }
            Error::ChangeSetExists(_) => Self { code: "AlreadyExistsException", ..Self::validation(text) },
            Error::ChangeSetState { .. } => Self { code: "InvalidChangeSetStatus", ..Self::validation(text) },
            Error::Delegate(DelegateError::Unavailable(_)) => Self::new(UNAVAILABLE, None),
            Error::Unavailable(_) => Self::new(UNAVAILABLE, Some(&text)),
            Error::NoTemplate => Self::missing("TemplateBody or TemplateUrl were not given."),
            error => Self::internal(error),
        }
    }
}

impl Fault {
    fn of_class(class: &Class, text: &str) -> Self {
        let kind = match class {
            Class::ActionInProgress => BUSY,
            Class::Forbidden | Class::NotAuthorized => ACCESS_DENIED,
            Class::RequestLimitExceeded => LIMIT,
            Class::HTTPTooManyRequests => {
                return Self { status: StatusCode::BAD_REQUEST, code: "Throttling", message: text.to_owned() };
            }
            Class::StackExists => ALREADY_EXISTS,
            // Heat does not show their texts.
            Class::AttributeError | Class::ValueError => return Self::new(INVALID_VALUE, None),
            Class::EntityNotFound
            | Class::InvalidBreakPointHook
            | Class::InvalidSchemaError
            | Class::InvalidTemplateReference
            | Class::InvalidTemplateSection
            | Class::InvalidTemplateVersion
            | Class::InvalidTenant
            | Class::MissingCredentialError
            | Class::NotSupported
            | Class::PhysicalResourceIDAmbiguity
            | Class::PropertyUnspecifiedError
            | Class::ResourceActionNotSupported
            | Class::ResourceNotAvailable
            | Class::ResourceNotFound
            | Class::ResourcePropertyConflict
            | Class::StackValidationFailed
            | Class::UnknownUserParameter
            | Class::UserParameterMissing => INVALID_VALUE,
            // Python's own errors are not shown.
            Class::AssertionError
            | Class::IndexError
            | Class::KeyError
            | Class::NotImplementedError
            | Class::RuntimeError
            | Class::TypeError => return Self::new(INTERNAL, None),
            _ => INTERNAL,
        };
        Self::new(kind, Some(text))
    }
}

impl From<Diagnostic> for Fault {
    fn from(error: Diagnostic) -> Self {
        Error::from(error).into()
    }
}

impl From<kiln_store::Error> for Fault {
    fn from(error: kiln_store::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<NotPassed> for Fault {
    fn from(error: NotPassed) -> Self {
        tracing::warn!("a request for Heat has no answer: {}", Chain(&error));
        match error.status() {
            StatusCode::SERVICE_UNAVAILABLE => Self::of_heat(),
            status => Self { status, ..Self::new(INTERNAL, Some(&error.to_string())) },
        }
    }
}

impl From<SignatureError> for Fault {
    fn from(error: SignatureError) -> Self {
        match error {
            SignatureError::Incomplete => Self::new(INCOMPLETE, None),
            SignatureError::Partial(why) => Self::new(SIGNATURE, Some(why)),
            SignatureError::NoKey => Self::new(MISSING_KEY, None),
            SignatureError::UnknownKey => Self::new(UNKNOWN_KEY, None),
            SignatureError::Mismatch => Self::new(SIGNATURE, None),
            SignatureError::Refused => Self::new(ACCESS_DENIED, None),
            SignatureError::Unavailable(_) => Self::new(UNAVAILABLE, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    /// Every class of the reference has its code, status and type.
    #[test]
    fn classes_of_the_reference() {
        let text = include_str!("../tests/data/cfn_error_classes.json");
        let classes: BTreeMap<String, Value> = serde_json::from_str(text).expect("JSON");
        assert!(classes.len() > 90);
        for (class, expected) in classes {
            let fault = Fault::of_class(&Class::of(class.clone()), "text");
            assert_eq!(fault.code, expected["Code"], "{class}");
            assert_eq!(u64::from(fault.status.as_u16()), expected["status"], "{class}");
            assert_eq!(fault.who(), expected["Type"], "{class}");
            let explanation = expected["explanation"].as_str().expect("a text");
            assert!(fault.message.starts_with(explanation), "{class}: {}", fault.message);
        }
    }
}
