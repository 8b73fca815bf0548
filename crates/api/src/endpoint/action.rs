//! `POST …/actions`: suspend, resume, check, cancel.

use axum::response::Response;
use kiln_resource::{Action, State, Status};
use kiln_store::{Stack, StackRequest};
use kiln_value::{Map, Value};

use crate::call::Call;
use crate::desired;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    let none = Map::new();
    let asked = call.body.as_ref().and_then(Value::as_map).unwrap_or(&none);
    let name = match asked.keys().collect::<Vec<_>>().as_slice() {
        [] => return Err(ApiError::bad_request("No action specified")),
        [name] => name.as_str(),
        _ => return Err(ApiError::bad_request("Multiple actions specified")),
    };
    match name {
        "suspend" => settle(call, Action::Suspend).await?,
        "resume" => settle(call, Action::Resume).await?,
        "check" => settle(call, Action::Check).await?,
        "cancel_update" => cancel(call).await?,
        "cancel_without_rollback" => {
            call.allow("actions:cancel_without_rollback")?;
            return Err(ApiError::not_implemented("Cancelling without rollback"));
        }
        _ => return Err(ApiError::bad_request(format!("Invalid action {name} specified"))),
    }
    Ok(reply::json(&Value::Null))
}

/// An action on a stack that rests. What has been reached already is not done again.
async fn settle(call: &Call, action: Action) -> Result<(), ApiError> {
    call.allow(&format!("actions:{}", action.as_str().to_ascii_lowercase()))?;
    let stack = call.stack().await?;
    if action != Action::Check {
        desired::allow_types_of(call, &stack).await?;
        if stack.state.is_complete(action) {
            return Ok(());
        }
    }
    refuse_busy(&stack)?;
    ask(call, &stack, action).await
}

/// Ends a running update by a rollback.
async fn cancel(call: &Call) -> Result<(), ApiError> {
    call.allow("actions:cancel_update")?;
    let stack = call.stack().await?;
    if stack.state != State::new(Action::Update, Status::InProgress) {
        return Err(ApiError::not_supported(&format!("Cancelling update when stack is {}", stack.state)));
    }
    ask(call, &stack, Action::Rollback).await
}

async fn ask(call: &Call, stack: &Stack, action: Action) -> Result<(), ApiError> {
    let request = StackRequest {
        if_generation: Some(stack.generation),
        ..StackRequest::new(action, call.api.backends.clock.now())
    };
    call.api.backends.store.request(stack.id, request).await?;
    Ok(())
}

fn refuse_busy(stack: &Stack) -> Result<(), ApiError> {
    if !stack.is_pending() {
        return Ok(());
    }
    let (name, action) = (&stack.name, stack.state.action);
    Err(ApiError::new("ActionInProgress", format!("Stack {name} already has an action ({action}) in progress.")))
}
