//! `GET …/snapshots/{id}`.

use axum::response::Response;
use kiln_value::value;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::snapshot::snapshot_view;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:show_snapshot")?;
    let stack = call.stack().await?;
    let snapshot = call.service().snapshot(&stack, call.params.get("snapshot_id")).await?;
    Ok(reply::json(&value!({ "snapshot": (snapshot_view(&snapshot)) })))
}
