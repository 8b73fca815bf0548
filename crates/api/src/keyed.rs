//! Requests with an idempotency key: a client may send them again, and they are carried out once.
//!
//! The rules are those of the IETF draft "The Idempotency-Key HTTP Header Field": a key belongs to a user, a project and a
//! route. The same body gets the first answer again, another body 422, and a request that is still processed 409.

use axum::body::{Body, to_bytes};
use axum::response::Response;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use http::{HeaderMap, Method, StatusCode};
use kiln_service::{Ending, Repeatable, Repetition};
use kiln_store::Operation;
use kiln_value::{Class, text};
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::endpoint::{Endpoint, created};
use crate::error::ApiError;
use crate::http::reply;

/// The names of the header.
const HEADERS: [&str; 2] = ["idempotency-key", "x-openstack-idempotency-key"];
/// The longest key, in bytes.
const LONGEST: usize = 255;
/// The largest answer that is kept, in bytes.
const LARGEST: usize = 4 * 1024 * 1024;
/// Says that an answer is the one to an earlier request.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// What is to be done with a request.
pub(crate) enum Begun {
    /// It is carried out; it may have a key.
    Run(Option<Repeatable>),
    /// It was carried out: the answer.
    Answered(Response),
}

/// An answer, as it is stored.
#[derive(Serialize, Deserialize)]
struct Answer {
    status: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    body: String,
}

/// Begins a request that may have a key.
pub(crate) async fn begin(call: &Call, method: &Method, endpoint: &Endpoint) -> Result<Begun, ApiError> {
    let Some(key) = key(&call.headers)?.filter(|_| *method != Method::GET) else { return Ok(Begun::Run(None)) };
    let Some(store) = call.api.options.answers.clone() else {
        return Err(ApiError::not_supported("Idempotency-Key"));
    };
    let route = format!("{method} {}", call.path_and_query);
    let of_whom = [key.as_str(), &call.caller.user_id, &call.caller.project_id, &route];
    let body = call.body.as_ref().map(text::json).unwrap_or_default();
    match Repeatable::begin(store, &of_whom, &body, &call.request_id, call.project()).await? {
        Repetition::First(repeatable) => Ok(Begun::Run(Some(repeatable))),
        Repetition::OtherBody => Err(ApiError {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            ..ApiError::new(
                Class::of("HTTPUnprocessableEntity".to_owned()),
                "The Idempotency-Key was used for a request with another body: use a new key for a new request.",
            )
        }),
        Repetition::Answered(answer) => Ok(Begun::Answered(replayed(&answer)?)),
        Repetition::Begun(operation, repeatable) => {
            let response = recovered(call, endpoint, &operation).await?;
            Ok(Begun::Answered(end(repeatable, response).await))
        }
        Repetition::Running => Err(ApiError::new(
            Class::HTTPConflict,
            "A request with this Idempotency-Key is being processed: try again later.",
        )),
    }
}

/// The key: a text, in quotes as in the draft, or without.
fn key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(given) = HEADERS.iter().find_map(|name| headers.get(*name)) else { return Ok(None) };
    let text = given.to_str().unwrap_or_default().trim();
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    if bare.is_empty() || bare.len() > LONGEST || bare.contains('"') {
        return Err(ApiError::bad_request(format!("The Idempotency-Key must be a text of 1 to {LONGEST} characters.")));
    }
    Ok(Some(bare.to_owned()))
}

/// The answer to a request whose operation is stored, although its process ended before it answered.
async fn recovered(call: &Call, endpoint: &Endpoint, operation: &Operation) -> Result<Response, ApiError> {
    if endpoint.creates_stack()
        && let Some(stack) = call.store().stack(operation.stack).await?
    {
        return Ok(created(call, &stack));
    }
    Ok(reply::empty(StatusCode::from_u16(endpoint.answer.status()).unwrap_or(StatusCode::ACCEPTED)))
}

/// An answer that is stored.
fn replayed(answer: &str) -> Result<Response, ApiError> {
    let answer: Answer = serde_json::from_str(answer).map_err(ApiError::internal)?;
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).map_err(ApiError::internal)?;
    for (name, value) in [(CONTENT_TYPE, answer.content_type), (LOCATION, answer.location)] {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(response)
}

/// Whether an answer is final. After others, the same request is carried out again: the state of the stack or of the service
/// was in the way.
fn is_final(status: StatusCode) -> bool {
    let in_the_way =
        [StatusCode::UNAUTHORIZED, StatusCode::REQUEST_TIMEOUT, StatusCode::CONFLICT, StatusCode::TOO_MANY_REQUESTS];
    !in_the_way.contains(&status)
}

/// Stores the answer, and returns it.
pub(crate) async fn end(repeatable: Repeatable, response: Response) -> Response {
    let (head, body) = response.into_parts();
    let Ok(body) = to_bytes(body, LARGEST).await else {
        return reply::empty(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let header = |name| head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
    let answer = Answer {
        status: head.status.as_u16(),
        content_type: header(CONTENT_TYPE),
        location: header(LOCATION),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    let ending = match serde_json::to_string(&answer) {
        _ if head.status.is_server_error() => Ending::Unknown,
        Ok(answer) if is_final(head.status) => Ending::Answered(answer),
        _ => Ending::Refused,
    };
    repeatable.end(ending).await;
    Response::from_parts(head, Body::from(body))
}
