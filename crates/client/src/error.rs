//! What can go wrong on the way to the service, at the service, and before.

use kiln_cloud::TransportError;
use kiln_value::Value;

/// Why a call did not give what it should.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The service refused.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The service did not answer.
    #[error("Error communicating with {endpoint} {source}")]
    Unreachable {
        /// Where it should be.
        endpoint: String,
        /// Why not.
        source: TransportError,
    },
    /// Keystone did not answer.
    #[error("Keystone at {url} cannot be reached: {reason}")]
    NoKeystone {
        /// Where it should be.
        url: String,
        /// Why not.
        reason: String,
    },
    /// There is no token or no endpoint.
    #[error("{0}")]
    Access(String),
    /// The answer is not what the API describes.
    #[error("{0}")]
    Answer(String),
    /// What the user gave cannot be used.
    #[error(transparent)]
    Input(#[from] InputError),
}

impl Error {
    /// The HTTP status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => Some(refusal.status),
            _ => None,
        }
    }

    /// Whether the same call may well succeed a little later: the service is not there, or not quite.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::NoKeystone { .. }) || matches!(self.status(), Some(502..=504))
    }

    /// Whether the service says that it does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }
}

/// An answer of the service that is an error, as Heat words it (reference `errors.json`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// Error class: `EntityNotFound`, `StackValidationFailed` …; empty if the service did not say.
    pub class: String,
    /// The text for the user.
    pub message: String,
    /// Places in the template, where the service is Kiln and knows them.
    pub places: Vec<ErrorLocation>,
}

/// A place in a template that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorLocation {
    /// What is wrong.
    pub message: String,
    /// Where in the document: `resources.server.properties.flavor`.
    pub path: String,
    /// Line, from 1.
    pub line: Option<i64>,
    /// Column, from 1.
    pub column: Option<i64>,
    /// What may help.
    pub hints: Vec<String>,
}

impl Refusal {
    /// Reads the body of an answer.
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
            class: error.and_then(|error| said(error, "type")).unwrap_or_default().to_owned(),
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
        }
    }
}

fn said<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.str_at(key).filter(|text| !text.is_empty())
}

/// The text of an error that is not Heat's JSON, as a proxy or Keystone's middleware sends it.
fn plain(status: u16, body: &[u8]) -> String {
    let reason = http::StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason()).unwrap_or_default();
    let text = String::from_utf8_lossy(body);
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('<'));
    match first {
        Some(line) if !line.starts_with('{') => format!("{line} (HTTP {status})"),
        _ => format!("{reason} (HTTP {status})"),
    }
}

/// A file, reference or parameter that cannot be used. The texts are those of python-heatclient.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// A template or environment that the user names cannot be read.
    #[error("Could not read {url}: {reason}")]
    Unreadable {
        /// Its URL.
        url: String,
        /// Why not.
        reason: String,
    },
    /// What a template or environment refers to cannot be read.
    #[error("Could not fetch contents for {url}")]
    Reference {
        /// Its URL.
        url: String,
        /// The document that refers to it.
        named_in: String,
        /// Why not.
        reason: String,
    },
    /// A template is empty.
    #[error("Could not fetch template from {0}")]
    EmptyTemplate(String),
    /// A template is no YAML or JSON, or has no version.
    #[error("Error parsing template {url} {reason}")]
    Template {
        /// Its URL.
        url: String,
        /// The parser's words.
        reason: String,
    },
    /// An environment is no YAML or not an environment.
    #[error("{reason}")]
    Environment {
        /// Its URL.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// A parameter is not `key=value`.
    #[error("Malformed parameter({0}). Use the key=value format.")]
    Parameter(String),
    /// Neither a template nor the word to keep the existing one was given.
    #[error("A template is needed: give --template, or --existing to keep the stack's own")]
    NoTemplate,
}
