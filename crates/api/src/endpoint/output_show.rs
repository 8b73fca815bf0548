//! `GET …/outputs/{key}`: an output with its value.

use axum::response::Response;
use http::Method;
use kiln_value::{Class, value};

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::output::output;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ShowOutput",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/outputs/{output_key}",
    rule: Rule::Of("stacks:show_output"),
    tag: "outputs",
    summary: "Show an output",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let view = call.service().view(call.stack().await?).await?;
    let key = call.params.get("output_key");
    let outputs = view.outputs(Some(key)).await;
    let found = outputs.first();
    let found =
        found.ok_or_else(|| ApiError::new(Class::NotFound, format!("Specified output key {key} not found.")))?;
    Ok(reply::json(&value!({ "output": (output(found)) })))
}
