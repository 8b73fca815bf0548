//! Request bodies: when they are read, and up to which size (docs/heat-behaviour.md §20).

use axum::body::Body;
use futures::StreamExt;
use http::request::Parts;
use kiln_value::Value;

use crate::error::ApiError;

/// A body that is too large is still received and discarded, up to this multiple of the limit: many clients do not read
/// the response before they have sent everything.
const PATIENCE: usize = 16;

/// The JSON object of a request, or `None` where Heat ignores the body: without length, with another content type, or
/// with a text that does not start with `{`.
///
/// At most `limit` bytes are stored.
pub(crate) async fn read(parts: &Parts, body: Body, limit: usize) -> Result<Option<Value>, ApiError> {
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let length = header("content-length").and_then(|length| length.parse::<usize>().ok()).unwrap_or(0);
    let is_json = header("content-type").is_none_or(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.is_empty() || matches!(kind, "JSON" | "application/json" | "text/plain")
    });
    if length == 0 || !is_json {
        return Ok(None);
    }
    let mut text = Vec::with_capacity(length.min(limit));
    let mut arrived = 0;
    let mut stream = body.into_data_stream();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|_| ApiError::malformed())?;
        arrived += chunk.len();
        if arrived <= limit {
            text.extend_from_slice(&chunk);
        } else if arrived > limit.saturating_mul(PATIENCE) {
            break;
        }
    }
    if length.max(arrived) > limit {
        return Err(too_big(length.max(arrived), limit));
    }
    if text.first() != Some(&b'{') {
        return Ok(None);
    }
    let text = std::str::from_utf8(&text).map_err(|error| ApiError::bad_request(error.to_string()))?;
    kiln_yaml::json::parse(text).map(Some).map_err(|error| ApiError::bad_request(error.to_string()))
}

fn too_big(length: usize, limit: usize) -> ApiError {
    ApiError::limit(&format!("JSON body size ({length} bytes) exceeds maximum allowed size ({limit} bytes)."))
}
