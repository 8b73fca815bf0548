//! Requests with an idempotency key: a client may send them again, and they are carried out once.
//!
//! The rules are those of the IETF draft "The Idempotency-Key HTTP Header Field": a key belongs to a user, a project and a
//! route. The same body gets the first answer again, another body 422, and a request that is still processed 409.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::response::Response;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use http::{HeaderMap, Method, StatusCode};
use kiln_store::{AnswerStore, Digest, EarlierRequest, KeyedRequest};
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
/// After this time, the process of a request without an answer and without an operation is believed to have ended.
const ABANDONED: Duration = Duration::from_mins(2);
/// Says that an answer is the one to an earlier request.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// A request with a key that is to be carried out.
pub(crate) struct Keyed {
    store: Arc<dyn AnswerStore>,
    request: KeyedRequest,
    project: String,
}

/// What is to be done with a request.
pub(crate) enum Begun {
    /// It is carried out; it may have a key.
    Run(Option<Keyed>),
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
    let project = call.project().to_owned();
    let route = format!("{method} {}", call.path_and_query);
    let of_whom = [key.as_str(), &call.caller.user_id, &call.caller.project_id, &route].join("\n");
    let body = call.body.as_ref().map(text::json).unwrap_or_default();
    let request = KeyedRequest {
        id: Digest::of(&of_whom).to_string(),
        body: Digest::of(&body).to_string(),
        request: call.request_id.clone(),
    };
    let Some(earlier) = store.begin_keyed(&request).await? else {
        return Ok(Begun::Run(Some(Keyed { store, request, project })));
    };
    if earlier.body != request.body {
        return Err(ApiError {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            ..ApiError::new(
                Class::of("HTTPUnprocessableEntity".to_owned()),
                "The Idempotency-Key was used for a request with another body: use a new key for a new request.",
            )
        });
    }
    if let Some(answer) = &earlier.answer {
        return Ok(Begun::Answered(replayed(answer)?));
    }
    if let Some(response) = recovered(call, endpoint, &*store, &earlier).await? {
        // It is given as the answer to the earlier request.
        let earlier = Keyed { store, request: KeyedRequest { request: earlier.request, ..request }, project };
        return Ok(Begun::Answered(earlier.end(response).await));
    }
    if earlier.age > ABANDONED && store.take_over_keyed(&request, &earlier.request).await? {
        return Ok(Begun::Run(Some(Keyed { store, request, project })));
    }
    Err(ApiError::new(Class::HTTPConflict, "A request with this Idempotency-Key is being processed: try again later."))
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
async fn recovered(
    call: &Call,
    endpoint: &Endpoint,
    store: &dyn AnswerStore,
    earlier: &EarlierRequest,
) -> Result<Option<Response>, ApiError> {
    let Some(operation) = store.operation_of_request(call.project(), earlier).await? else { return Ok(None) };
    if endpoint.creates_stack() {
        let stack = call.store().stack(operation.stack).await?;
        return Ok(stack.map(|stack| created(call, &stack)));
    }
    Ok(Some(reply::empty(StatusCode::from_u16(endpoint.answer.status()).unwrap_or(StatusCode::ACCEPTED))))
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
    let in_the_way = [
        StatusCode::UNAUTHORIZED,
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::CONFLICT,
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ];
    !in_the_way.contains(&status)
}

impl Keyed {
    /// After an internal error or one of the database, the operation says whether something has happened.
    async fn forget_if_unchanged(&self) -> Result<(), kiln_store::Error> {
        match self.store.operation_of_request(&self.project, &self.as_earlier()).await? {
            Some(_) => Ok(()),
            None => self.store.forget_keyed(&self.request).await,
        }
    }

    fn as_earlier(&self) -> EarlierRequest {
        let KeyedRequest { body, request, .. } = self.request.clone();
        EarlierRequest { body, request, age: ABANDONED, answer: None }
    }

    /// Stores the answer, and returns it.
    pub(crate) async fn end(self, response: Response) -> Response {
        let (head, body) = response.into_parts();
        let Ok(body) = to_bytes(body, LARGEST).await else {
            return reply::empty(StatusCode::INTERNAL_SERVER_ERROR);
        };
        let stored = if head.status.is_server_error() {
            self.forget_if_unchanged().await
        } else if is_final(head.status) {
            let header =
                |name| head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
            let answer = Answer {
                status: head.status.as_u16(),
                content_type: header(CONTENT_TYPE),
                location: header(LOCATION),
                body: String::from_utf8_lossy(&body).into_owned(),
            };
            match serde_json::to_string(&answer) {
                Ok(answer) => self.store.answer_keyed(&self.request, &answer).await,
                Err(_) => Ok(()),
            }
        } else {
            self.store.forget_keyed(&self.request).await
        };
        if let Err(error) = stored {
            tracing::warn!(%error, "the answer to a request with an idempotency key cannot be stored");
        }
        Response::from_parts(head, Body::from(body))
    }
}
