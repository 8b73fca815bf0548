//! `PUT` and `PATCH /stacks/{name}/{id}`.

use axum::response::Response;
use kiln_resource::Action;
use kiln_store::{Stack, StackRequest};

use crate::call::Call;
use crate::desired;
use crate::error::ApiError;
use crate::http::page;

/// Replaces what the stack should be.
pub(crate) async fn put(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:update")?;
    update(call, false).await
}

/// Changes a part of it. The policy is that of the caller's own project, as in Heat.
pub(crate) async fn patch(call: &Call) -> Result<Response, ApiError> {
    call.same_project()?;
    call.body()?;
    call.enforce("stacks:update_patch", &call.caller.project_id)?;
    update(call, true).await
}

async fn update(call: &Call, patch: bool) -> Result<Response, ApiError> {
    // A body that says nothing is refused before the stack is looked for.
    let body = call.body()?;
    if !patch && !body.contains_key("template") && !body.contains_key("template_url") {
        return Err(ApiError::bad_request("No template specified"));
    }
    let stack = call.stack().await?;
    desired::allow_types_of(call, &stack).await?;
    refuse_state(&stack)?;
    let approved = desired::of_update(call, &stack, patch).await?;
    let arguments = &approved.arguments;
    let request = StackRequest {
        desired: Some(approved.texts()),
        disable_rollback: arguments.disable_rollback,
        timeout_mins: arguments.timeout_mins,
        tags: arguments.tags.clone().or_else(|| (!arguments.existing).then(Vec::new)),
        if_generation: Some(stack.generation),
        ..StackRequest::new(Action::Update, call.api.backends.clock.now())
    };
    call.api.backends.store.request(stack.id, request).await?;
    Ok(page::accepted(&call.headers))
}

fn refuse_state(stack: &Stack) -> Result<(), ApiError> {
    match stack.state.action {
        Action::Suspend => Err(ApiError::not_supported("Updating a stack when it is suspended")),
        Action::Delete => Err(ApiError::not_supported("Updating a stack when it is deleting")),
        _ => Ok(()),
    }
}
