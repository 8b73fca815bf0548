//! URLs of single resources: `POST /v1/signal/{ARN}` and `PUT /v1/waitcondition/{ARN}`.

use axum::body::Body;
use axum::response::Response;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderValue};
use kiln_service::{Error, Signal};
use kiln_template::StackIdentity;
use kiln_value::Value;

use crate::call::Call;
use crate::fault::Fault;
use crate::reply;

/// A path, with the ARN in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path<'a> {
    /// Any signal.
    Signal(&'a str),
    /// A signal to a wait condition handle.
    WaitCondition(&'a str),
}

impl<'a> Path<'a> {
    /// Reads the decoded path after the version.
    pub(crate) fn of(path: &'a str) -> Option<Self> {
        let signal = path.strip_prefix("/signal/").map(Self::Signal);
        signal.or_else(|| path.strip_prefix("/waitcondition/").map(Self::WaitCondition))
    }

    /// The project of the stack; `None` if there is no ARN.
    pub(crate) fn project(self) -> Option<String> {
        let (Self::Signal(arn) | Self::WaitCondition(arn)) = self;
        StackIdentity::from_arn(arn).ok().map(|identity| identity.tenant)
    }

    /// The method of the path.
    pub(crate) fn method(self) -> Method {
        match self {
            Self::Signal(_) => Method::POST,
            Self::WaitCondition(_) => Method::PUT,
        }
    }

    /// Sends the signal. `body` is a JSON object, or empty.
    pub(crate) async fn run(self, call: &Call, body: &[u8]) -> Result<Response, Fault> {
        let (Self::Signal(arn) | Self::WaitCondition(arn)) = self;
        call.allow("resource:signal")?;
        let identity = StackIdentity::from_arn(arn).map_err(|error| Fault::invalid(&error.text))?;
        let resource = identity.resource_name().ok_or_else(|| Fault::invalid("the ARN is not that of a resource"))?;
        let resource = resource.to_owned();
        let details = details(body)?;
        let stack = call.stack_of(&identity).await?.filter(|stack| stack.deleted.is_none());
        let stack = stack.ok_or_else(|| Fault::invalid(&Error::NoStack(identity.stack_name.clone()).to_string()))?;
        let shown = Value::from(resource.as_str());
        call.service().signal(stack, &Signal { resource, details }).await?;
        Ok(match self {
            Self::Signal(_) => empty(),
            Self::WaitCondition(_) => reply::document("resource", &shown),
        })
    }
}

/// The details of a signal.
fn details(body: &[u8]) -> Result<Value, Fault> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Null);
    }
    match serde_json::from_slice(body) {
        Ok(details @ Value::Map(_)) => Ok(details),
        _ => Err(Fault::invalid("the body of a signal must be a JSON object")),
    }
}

/// 200 without a body.
fn empty() -> Response {
    let mut response = Response::new(Body::empty());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=UTF-8"));
    response
}
