//! JSON responses.

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde::Serialize;

/// 200 with a body.
pub(crate) fn json(body: &impl Serialize) -> Response {
    json_with(StatusCode::OK, body)
}

/// A status with a body.
pub(crate) fn json_with(status: StatusCode, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => json_bytes(status, bytes.into()),
        Err(error) => {
            tracing::error!(%error, "failed to serialize a response");
            empty(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

/// A status with a body that is already JSON.
pub(crate) fn json_bytes(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A status without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
