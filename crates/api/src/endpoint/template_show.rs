//! `GET …/template`.

use axum::response::Response;
use http::StatusCode;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

/// The template is stored as JSON and sent unchanged.
pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:template")?;
    let stack = call.stack_or_deleted().await?;
    let text = call.store().content(&stack.desired.template).await?;
    Ok(reply::json_bytes(StatusCode::OK, text.into()))
}
