//! `GET …/snapshots/{id}`.

use axum::response::Response;
use http::Method;
use kiln_value::value;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::snapshot::snapshot_view;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ShowSnapshot",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/snapshots/{snapshot_id}",
    rule: Rule::Of("stacks:show_snapshot"),
    tag: "snapshots",
    summary: "Show a snapshot",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack().await?;
    let snapshot = call.service().snapshot(&stack, call.params.get("snapshot_id")).await?;
    Ok(reply::json(&value!({ "snapshot": (snapshot_view(&snapshot)) })))
}
