//! `GET …/export`: the data of a stack with its resources.

use axum::response::Response;
use kiln_service::Door;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:export")?;
    call.service().refuse_abandon()?;
    let stack = call.stack().await?;
    Ok(reply::json(&call.service().export_stack(&stack).await?.into_shown(Door::Export)))
}
