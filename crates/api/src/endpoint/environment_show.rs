//! `GET …/environment`: the effective environment, with masked values of hidden parameters.

use axum::response::Response;
use http::Method;
use kiln_service::Door;
use kiln_stack::load;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ShowEnvironment",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/environment",
    rule: Rule::Of("stacks:environment"),
    tag: "stacks",
    summary: "Show the environment of a stack",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack_or_deleted().await?;
    let sources = load::stored(call.backends(), &stack.desired).await?;
    let hidden = call.service().hidden(&stack, &sources).await?;
    let mut environment = sources.environment.to_stored();
    hidden.mask_environment(Door::Environment, &mut environment);
    for section in ["parameters", "parameter_defaults"] {
        if let Some(values) = environment.as_map_mut().and_then(|sections| sections.get_mut(section)?.as_map_mut()) {
            call.service().mask_inherited(Door::Environment, &stack, values).await?;
        }
    }
    Ok(reply::json(&environment))
}
