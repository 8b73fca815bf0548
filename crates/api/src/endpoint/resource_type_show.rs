//! `GET /resource_types/{name}`: the schema of a type.

use axum::response::Response;
use http::Method;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ShowResourceType",
    method: Method::GET,
    path: "/{tenant_id}/resource_types/{type_name}",
    rule: Rule::Of("stacks:resource_schema"),
    tag: "resource types",
    summary: "Show a resource type",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let name = call.params.get("type_name");
    let found = call.service().available_resource_type(&call.caller, name).await?;
    Ok(reply::json(&found.schema_view(false)))
}
