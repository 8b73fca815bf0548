//! `DELETE /stacks/{name}/{id}`.

use axum::response::Response;
use http::StatusCode;
use kiln_resource::Action;
use kiln_store::StackRequest;

use crate::call::Call;
use crate::desired;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:delete")?;
    let stack = call.stack().await?;
    desired::allow_types_of(call, &stack).await?;
    call.api.backends.store.request(stack.id, StackRequest::new(Action::Delete, call.api.backends.clock.now())).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}
