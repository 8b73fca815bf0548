//! `PATCH …/resources/{name}`: marks a resource as unhealthy.

use axum::response::Response;
use kiln_value::{Value, text};

use super::resource_show::{missing, resources};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::query;

const KEYS: [&str; 2] = ["mark_unhealthy", "resource_status_reason"];

/// The request is judged in full; the mark itself comes with a later issue.
pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("resource:mark_unhealthy")?;
    let body = call.body()?;
    let unknown: Vec<String> =
        body.keys().filter(|key| !KEYS.contains(&key.as_str())).map(|key| text::repr(&Value::from(key))).collect();
    if !unknown.is_empty() {
        let keys = unknown.join(", ");
        return Err(ApiError::bad_request(format!("Invalid keys in resource mark unhealthy {{{keys}}}")));
    }
    let mark = body
        .get("mark_unhealthy")
        .ok_or_else(|| ApiError::bad_request("Missing mandatory (mark_unhealthy) key from mark unhealthy request"))?;
    query::boolean("mark_unhealthy", mark)?;
    let resources = resources(call).await?;
    resources.row(call.params.get("resource_name")).ok_or_else(|| missing(call))?;
    Err(ApiError::not_implemented("Marking a resource unhealthy"))
}
