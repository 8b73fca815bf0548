//! `PUT` and `PATCH /stacks/{name}/{id}`.

use axum::response::Response;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::page;

/// Replaces the desired state.
pub(crate) async fn put(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:update")?;
    update(call, false).await
}

/// Changes a part of the desired state. The policy is that of the caller's own project, as in Heat.
pub(crate) async fn patch(call: &Call) -> Result<Response, ApiError> {
    call.same_project()?;
    call.body()?;
    call.enforce("stacks:update_patch", &call.caller.project_id)?;
    update(call, true).await
}

async fn update(call: &Call, patch: bool) -> Result<Response, ApiError> {
    let body = call.instantiation().await?;
    let update = body.update(patch)?;
    let stack = call.stack().await?;
    call.service().update_stack(&call.caller, &stack, update).await.map_err(|error| body.placed(error))?;
    Ok(page::accepted(&call.headers))
}
