//! `POST …/snapshots/{id}/restore`.

use axum::response::Response;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::page;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:restore_snapshot")?;
    let stack = call.stack().await?;
    call.service().restore_snapshot(&call.caller, &stack, call.params.get("snapshot_id")).await?;
    Ok(page::accepted(&call.headers))
}
