//! `DELETE …/snapshots/{id}`.

use axum::response::Response;
use http::Method;
use http::StatusCode;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "DeleteSnapshot",
    method: Method::DELETE,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/snapshots/{snapshot_id}",
    rule: Rule::Of("stacks:delete_snapshot"),
    tag: "snapshots",
    summary: "Delete a snapshot",
    query: &[],
    body: None,
    answer: Answer::Nothing,
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack().await?;
    call.service().delete_snapshot(&stack, call.params.get("snapshot_id")).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}
