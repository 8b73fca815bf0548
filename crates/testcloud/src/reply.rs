//! Results of a call: a reply, or an error that the service formats.

use bytes::Bytes;
use http::HeaderName;
use serde_json::Value;

/// A successful response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(HeaderName, String)>,
    pub(crate) body: Body,
}

/// The body of a [`Reply`].
#[derive(Debug)]
pub(crate) enum Body {
    Empty,
    Json(Value),
    Text(String),
    Bytes(Bytes),
}

impl Reply {
    pub(crate) fn json(status: u16, body: Value) -> Self {
        Reply { status, headers: Vec::new(), body: Body::Json(body) }
    }

    pub(crate) fn ok(body: Value) -> Self {
        Self::json(200, body)
    }

    pub(crate) fn created(body: Value) -> Self {
        Self::json(201, body)
    }

    pub(crate) fn accepted(body: Value) -> Self {
        Self::json(202, body)
    }

    pub(crate) fn empty(status: u16) -> Self {
        Reply { status, headers: Vec::new(), body: Body::Empty }
    }

    pub(crate) fn text(status: u16, text: String) -> Self {
        Reply { status, headers: Vec::new(), body: Body::Text(text) }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((HeaderName::from_static(name), value.into()));
        self
    }

    /// Headers whose names others have chosen.
    pub(crate) fn headers(mut self, headers: impl Iterator<Item = (String, String)>) -> Self {
        self.headers.extend(headers.filter_map(|(name, value)| Some((name.parse().ok()?, value))));
        self
    }
}

/// An error: status and text of the real service. `kind` is the class, which only Neutron shows.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(status: u16, kind: &'static str, message: impl Into<String>) -> Self {
        Refusal { status, kind, message: message.into() }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "Forbidden", message)
    }

    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self::new(404, "NotFound", message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, "Conflict", message)
    }

    /// Unknown path.
    pub(crate) fn no_route() -> Self {
        Self::new(404, "HTTPNotFound", "The resource could not be found.")
    }

    /// The path does not support the method.
    pub(crate) fn no_method() -> Self {
        Self::new(405, "HTTPMethodNotAllowed", "The method is not allowed for this resource.")
    }

    /// The token is missing, unknown or expired.
    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "The request you have made requires authentication.")
    }
}

/// The result of every handler.
pub(crate) type Outcome = Result<Reply, Refusal>;
