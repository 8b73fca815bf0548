//! Errors of the client.

use kiln_cloud::TransportError;
use kiln_value::{Class, Span, Value};

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The service returned an error.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The service is not reachable.
    #[error("Error communicating with {endpoint} {source}")]
    Unreachable {
        /// The endpoint.
        endpoint: String,
        /// The reason.
        source: TransportError,
    },
    /// Keystone is not reachable.
    #[error("Keystone at {url} is not reachable: {source}")]
    NoKeystone {
        /// The URL.
        url: String,
        /// The reason.
        source: TransportError,
    },
    /// There is no token or endpoint.
    #[error("{0}")]
    Access(String),
    /// The response does not match the API.
    #[error("{0}")]
    Answer(String),
    /// Invalid input of the user.
    #[error(transparent)]
    Input(#[from] InputError),
}

impl Error {
    /// The HTTP status of an error response.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => Some(refusal.status),
            _ => None,
        }
    }

    /// The class of an error response.
    pub fn class(&self) -> Option<&Class> {
        match self {
            Self::Refused(refusal) => refusal.class.as_ref(),
            _ => None,
        }
    }

    /// What the service says about the places of the error.
    pub fn places(&self) -> &[ErrorLocation] {
        match self {
            Self::Refused(refusal) => &refusal.places,
            _ => &[],
        }
    }

    /// Whether the error is temporary: the service is not available at the moment.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::NoKeystone { .. }) || matches!(self.status(), Some(502..=504))
    }

    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }
}

/// An error response of the service, in Heat's format (reference `errors.json`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// Error class; `None` if unknown.
    pub class: Option<Class>,
    /// The message for the user.
    pub message: String,
    /// Positions in the template, if the service is Kiln and knows them.
    pub places: Vec<ErrorLocation>,
}

/// A position of an error in the template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorLocation {
    /// The error message.
    pub message: String,
    /// Path in the document: `resources.server.properties.flavor`.
    pub path: String,
    /// Line, from 1.
    pub line: Option<i64>,
    /// Column, from 1.
    pub column: Option<i64>,
    /// Hints.
    pub hints: Vec<String>,
    /// The parameter whose value is wrong: the error is where the value comes from.
    pub parameter: Option<String>,
    /// The name that nothing has: of a parameter, a resource, an attribute or a condition.
    pub name: Option<String>,
    /// The place in a nested template, if it is in one; `path` is that of the resource that uses it.
    pub nested: Option<NestedLocation>,
}

/// A position of an error in a nested template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NestedLocation {
    /// The name of the template in the files of the stack.
    pub file: String,
    /// Path in the template.
    pub path: String,
    /// The error message without the way to the template.
    pub message: String,
}

impl Refusal {
    /// Parses the body of a response.
    pub fn read(status: u16, body: &[u8]) -> Self {
        let json: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = json.get("error");
        let message = error
            .and_then(|error| said(error, "message"))
            .or_else(|| said(&json, "explanation"))
            .map_or_else(|| plain(status, body), str::to_owned);
        let places = error.and_then(|e| e.get("diagnostics")).and_then(Value::as_list).unwrap_or_default();
        Self {
            status,
            class: error.and_then(|error| said(error, "type")).map(|class| Class::of(class.to_owned())),
            message,
            places: places.iter().map(ErrorLocation::read).collect(),
        }
    }
}

impl ErrorLocation {
    fn read(value: &Value) -> Self {
        let hints = value.get("hints").and_then(Value::as_list).unwrap_or_default();
        Self {
            message: value.str_at("message").unwrap_or_default().to_owned(),
            path: value.str_at("path").unwrap_or_default().to_owned(),
            line: value.get("line").and_then(Value::as_i64),
            column: value.get("column").and_then(Value::as_i64),
            hints: hints.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            parameter: value.str_at("parameter").map(str::to_owned),
            name: value.str_at("name").map(str::to_owned),
            nested: value.get("nested").and_then(NestedLocation::read),
        }
    }
}

impl NestedLocation {
    fn read(value: &Value) -> Option<Self> {
        let text = |key: &str| value.str_at(key).map(str::to_owned);
        Some(Self { file: text("file")?, path: text("path")?, message: text("message")? })
    }
}

fn said<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.str_at(key).filter(|text| !text.is_empty())
}

/// The message of an error that is not in Heat's JSON format, such as from a proxy or Keystone's middleware.
fn plain(status: u16, body: &[u8]) -> String {
    let reason = http::StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason()).unwrap_or_default();
    let text = String::from_utf8_lossy(body);
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('<'));
    match first {
        Some(line) if !line.starts_with('{') => format!("{line} (HTTP {status})"),
        _ => format!("{reason} (HTTP {status})"),
    }
}

/// A place in a document of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The text of the document.
    pub text: String,
    /// The range in it.
    pub span: Span,
}

/// Invalid files, references or parameters, with the texts of python-heatclient.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// A template or environment of the user cannot be read.
    #[error("Could not read {url}: {reason}")]
    Unreadable {
        /// Its URL.
        url: String,
        /// The reason.
        reason: String,
    },
    /// A file that a template or environment refers to cannot be read.
    #[error("Could not fetch contents for {url}")]
    Reference {
        /// Its URL.
        url: String,
        /// The referring document.
        named_in: String,
        /// The reason.
        reason: String,
        /// Where the document names it.
        place: Option<Place>,
    },
    /// A template is empty.
    #[error("Template {0} is empty")]
    EmptyTemplate(String),
    /// A template is not YAML or JSON, or has no version.
    #[error("Error parsing template {url} {reason}")]
    Template {
        /// Its URL.
        url: String,
        /// The message of the parser.
        reason: String,
        /// Where.
        place: Option<Place>,
        /// What helps.
        hint: Option<String>,
    },
    /// An environment is not YAML or not an environment.
    #[error("{reason}")]
    Environment {
        /// Its URL.
        url: String,
        /// The problem.
        reason: String,
        /// Where.
        place: Option<Place>,
        /// What helps.
        hint: Option<String>,
    },
    /// A parameter is not `key=value`.
    #[error("Malformed parameter({0}). Use the key=value format.")]
    Parameter(String),
    /// There is neither a template nor the option to keep the current one.
    #[error("No template: specify --template, or --existing to keep the current template")]
    NoTemplate,
}
