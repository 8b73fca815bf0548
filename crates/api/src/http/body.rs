//! Request bodies: when they are read, and up to which size (docs/heat-behaviour.md §20).

use std::sync::Arc;

use axum::body::Body;
use http::request::Parts;
use kiln_topology::TypeFiles;
use kiln_value::Value;
use kiln_web::{BodyError, announced_length, read_body};

use super::upload;
use crate::error::ApiError;

/// The JSON object of a request, or `None` where Heat ignores the body: without length, with another content type, or
/// with a text that does not start with `{`.
///
/// At most `limit` bytes are stored. Only an endpoint that takes a template accepts uploads: it has `types` for them.
pub(crate) async fn read(
    parts: &Parts,
    body: Body,
    limit: usize,
    types: Option<&Arc<TypeFiles>>,
) -> Result<Option<Value>, ApiError> {
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(types) = types
        && let Some(kind) = header("content-type").filter(|kind| upload::is_upload(kind))
    {
        return upload::read(parts, kind, body, limit, types).await.map(Some);
    }
    let is_json = header("content-type").is_none_or(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.is_empty() || matches!(kind, "JSON" | "application/json" | "text/plain")
    });
    if announced_length(parts) == 0 || !is_json {
        return Ok(None);
    }
    let text = bytes(parts, body, limit).await?;
    if text.first() != Some(&b'{') {
        return Ok(None);
    }
    let text = std::str::from_utf8(&text).map_err(|error| ApiError::bad_request(error.to_string()))?;
    kiln_yaml::json::parse(text).map(Some).map_err(|error| ApiError::bad_request(error.to_string()))
}

/// A body as it is, with at most `limit` bytes.
pub(crate) async fn bytes(parts: &Parts, body: Body, limit: usize) -> Result<Vec<u8>, ApiError> {
    read_body(parts, body, limit).await.map_err(|error| match error {
        BodyError::TooLarge(size) => too_big(size, limit),
        BodyError::Broken => ApiError::malformed(),
    })
}

fn too_big(length: usize, limit: usize) -> ApiError {
    ApiError::limit(&format!("JSON body size ({length} bytes) exceeds maximum allowed size ({limit} bytes)."))
}
