//! `DELETE /stacks/{name}/{id}`.

use axum::response::Response;
use http::Method;
use http::StatusCode;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "DeleteStack",
    method: Method::DELETE,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}",
    rule: Rule::Of("stacks:delete"),
    tag: "stacks",
    summary: "Delete a stack",
    query: &[("if_version", "text")],
    body: None,
    answer: Answer::Nothing,
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack().await?;
    // Kiln: what a plan of the delete was computed from.
    call.service().delete_planned(&call.caller, &stack, call.query.given("if_version"), None).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}
