//! `DELETE …/abandon`: deletes a stack and keeps its objects.

use axum::response::Response;
use http::Method;
use kiln_service::Door;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "AbandonStack",
    method: Method::DELETE,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/abandon",
    rule: Rule::Of("stacks:abandon"),
    tag: "stacks",
    summary: "Delete a stack and keep its objects",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    call.service().refuse_abandon()?;
    let stack = call.stack().await?;
    let data = call.service().abandon_stack(&call.caller, &stack).await?;
    Ok(reply::json(&data.into_shown(Door::Export)))
}
