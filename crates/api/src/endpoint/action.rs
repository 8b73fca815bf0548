//! `POST …/actions`: suspend, resume, check, cancel.

use axum::response::Response;
use http::Method;
use kiln_service::StackAction;
use kiln_value::{Map, Value};

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "Act",
    method: Method::POST,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/actions",
    rule: Rule::Own,
    tag: "stacks",
    summary: "Suspend, resume, check or cancel a stack",
    query: &[],
    body: Some("Act"),
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let none = Map::new();
    let asked = call.body.as_ref().and_then(Value::as_map).unwrap_or(&none);
    let name = match asked.keys().collect::<Vec<_>>().as_slice() {
        [] => return Err(ApiError::bad_request("No action specified")),
        [name] => name.as_str(),
        _ => return Err(ApiError::bad_request("Multiple actions specified")),
    };
    let action = match name {
        "suspend" => StackAction::Suspend,
        "resume" => StackAction::Resume,
        "check" => StackAction::Check,
        "cancel_update" => StackAction::CancelUpdate,
        "cancel_without_rollback" => StackAction::CancelWithoutRollback,
        _ => return Err(ApiError::bad_request(format!("Invalid action {name} specified"))),
    };
    call.allow(&format!("actions:{name}"))?;
    let stack = call.stack().await?;
    call.service().act(&call.caller, &stack, action).await?;
    Ok(reply::json(&Value::Null))
}
