//! `DELETE …/abandon`: deletes a stack and keeps its objects.

use axum::response::Response;
use kiln_service::Door;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:abandon")?;
    call.service().refuse_abandon()?;
    let stack = call.stack().await?;
    let data = call.service().abandon_stack(&call.caller, &stack).await?;
    Ok(reply::json(&data.into_shown(Door::Export)))
}
