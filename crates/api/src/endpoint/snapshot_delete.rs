//! `DELETE …/snapshots/{id}`.

use axum::response::Response;
use http::StatusCode;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:delete_snapshot")?;
    let stack = call.stack().await?;
    call.service().delete_snapshot(&stack, call.params.get("snapshot_id")).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}
