//! `GET …/snapshots`.

use axum::response::Response;
use kiln_value::{Value, value};

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::snapshot::snapshot_view;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:list_snapshots")?;
    let stack = call.stack().await?;
    let snapshots: Value = call.service().snapshots(&stack).await?.iter().map(snapshot_view).collect();
    Ok(reply::json(&value!({ "snapshots": snapshots })))
}
