//! `GET …/template`.

use axum::response::Response;
use http::Method;
use http::StatusCode;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ShowTemplate",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/template",
    rule: Rule::Of("stacks:template"),
    tag: "stacks",
    summary: "Show the template of a stack",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

/// The template is stored as JSON and sent unchanged.
async fn run(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack_or_deleted().await?;
    let text = call.store().content(&stack.desired.template).await?;
    Ok(reply::json_bytes(StatusCode::OK, text.into()))
}
