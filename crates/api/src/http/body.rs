//! Request bodies: when they are read, and up to which size (docs/heat-behaviour.md §20).
//!
//! Besides JSON, a body may be a package or a document of a topology language (docs/topology.md). It becomes the JSON that
//! a client would have sent.

use axum::body::Body;
use http::request::Parts;
use kiln_topology::upload::{self, Limits, Upload};
use kiln_value::{Map, Value};
use kiln_web::{BodyError, Query};

use crate::error::ApiError;

/// The JSON object of a request, or `None` where Heat ignores the body: without length, with another content type, or
/// with a text that does not start with `{`.
///
/// At most `limit` bytes are stored. Only an endpoint that takes a template accepts uploads.
pub(crate) async fn read(
    parts: &Parts,
    body: Body,
    limit: usize,
    takes_template: bool,
) -> Result<Option<Value>, ApiError> {
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(kind) = header("content-type").map(essence).filter(|kind| takes_template && is_upload(kind)) {
        return read_upload(parts, &kind, body, limit).await.map(Some);
    }
    let length = header("content-length").and_then(|length| length.parse::<usize>().ok()).unwrap_or(0);
    let is_json = header("content-type").is_none_or(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.is_empty() || matches!(kind, "JSON" | "application/json" | "text/plain")
    });
    if length == 0 || !is_json {
        return Ok(None);
    }
    let text = kiln_web::read_body(body, length, limit).await.map_err(|error| match error {
        BodyError::TooLarge(size) => too_big(size, limit),
        BodyError::Broken => ApiError::malformed(),
    })?;
    if text.first() != Some(&b'{') {
        return Ok(None);
    }
    let text = std::str::from_utf8(&text).map_err(|error| ApiError::bad_request(error.to_string()))?;
    kiln_yaml::json::parse(text).map(Some).map_err(|error| ApiError::bad_request(error.to_string()))
}

/// Content types of uploads.
const UPLOADS: [&str; 10] = [
    "application/zip",
    "application/x-zip-compressed",
    "application/gzip",
    "application/x-gzip",
    "application/x-tar",
    "application/yaml",
    "application/x-yaml",
    "text/yaml",
    "text/x-yaml",
    "application/vnd.oasis.csar",
];

/// A content type without its parameters.
fn essence(kind: &str) -> String {
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_upload(kind: &str) -> bool {
    UPLOADS.contains(&kind) || kind == "multipart/form-data"
}

/// A package or document as the request to create, update, preview or validate a stack. Its other parts are parameters of
/// the query: `stack_name`, `parameters` (JSON), `disable_rollback`, `timeout_mins`, `tags`, and `software`, which is `deployments` or `cloud-init`.
async fn read_upload(parts: &Parts, kind: &str, body: Body, limit: usize) -> Result<Value, ApiError> {
    if kind == "multipart/form-data" {
        return Err(ApiError::not_supported(
            "multipart/form-data: send the package as the body, and parameters in the query",
        ));
    }
    let length = parts.headers.get("content-length").and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0);
    let bytes = kiln_web::read_body(body, length, limit).await.map_err(|error| match error {
        BodyError::TooLarge(size) => {
            let message = format!("The upload ({size} bytes) exceeds maximum allowed size ({limit} bytes).");
            ApiError::limit(&message)
        }
        BodyError::Broken => ApiError::malformed(),
    })?;
    let query = Query::parse(parts.uri.query());
    let mut request = Map::new();
    for name in ["stack_name", "disable_rollback", "timeout_mins", "tags"] {
        if let Some(value) = query.get(name) {
            request.insert(name.to_owned(), value.into());
        }
    }
    let mut given = Map::new();
    if let Some(text) = query.get("parameters") {
        let parsed = kiln_yaml::json::parse(text).map_err(|error| ApiError::bad_request(error.to_string()))?;
        let Value::Map(parameters) = parsed else {
            return Err(ApiError::bad_request("The parameters in the query must be a JSON object."));
        };
        given = parameters;
        request.insert("parameters".to_owned(), given.clone().into());
    }
    let cloud_init = match query.get("software") {
        None | Some("deployments") => false,
        Some("cloud-init") => true,
        Some(_) => return Err(ApiError::bad_request("software must be deployments or cloud-init.")),
    };
    // As much as a client may send as JSON.
    let limits = Limits { archive_bytes: limit, bytes: limit.saturating_mul(16), ..Limits::default() };
    let read = tokio::task::spawn_blocking(move || upload::read(&bytes, &given, cloud_init, &limits));
    let Upload { template, files, questions } =
        read.await.map_err(ApiError::internal)?.map_err(ApiError::of_several)?;
    request.insert("template".to_owned(), template);
    request.insert("files".to_owned(), files.into());
    request.insert("questions".to_owned(), questions.into());
    Ok(request.into())
}

fn too_big(length: usize, limit: usize) -> ApiError {
    ApiError::limit(&format!("JSON body size ({length} bytes) exceeds maximum allowed size ({limit} bytes)."))
}
