//! `GET …/export`: the data of a stack with its resources.

use axum::response::Response;
use http::Method;
use kiln_service::Door;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ExportStack",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/export",
    rule: Rule::Of("stacks:export"),
    tag: "stacks",
    summary: "Export a stack",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    call.service().refuse_abandon()?;
    let stack = call.stack().await?;
    Ok(reply::json(&call.service().export_stack(&stack).await?.into_shown(Door::Export)))
}
