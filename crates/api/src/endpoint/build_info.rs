//! `GET /build_info`.

use axum::response::Response;
use kiln_value::value;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

/// API and engine are one binary with the same revision.
pub(crate) fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("build_info:build_info")?;
    let revision = &call.api.options.revision;
    Ok(reply::json(&value!({ "api": { "revision": revision }, "engine": { "revision": revision } })))
}
