//! `POST …/actions`: suspend, resume, check, cancel.

use axum::response::Response;
use http::Method;
use kiln_service::StackAction;
use kiln_value::{Map, Value, value};

use super::{Answer, Body, Endpoint, Rule};
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
    body: Some(&BODY),
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

/// An action with its options, which are ignored.
static BODY: Body = Body {
    name: "Act",
    required: true,
    is_template: false,
    schema: || {
        let action = value!({ "type": ["object", "null", "string"] });
        let names = ["suspend", "resume", "check", "cancel_update", "cancel_without_rollback"];
        let actions: Map = names.iter().map(|name| ((*name).to_owned(), action.clone())).collect();
        value!({ "type": "object", "minProperties": 1, "maxProperties": 1, "properties": actions })
    },
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
