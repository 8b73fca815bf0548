//! `GET …/files`.

use axum::response::Response;
use http::StatusCode;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

/// The files are stored as one JSON map and sent as it is.
pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:files")?;
    let stack = call.stack_or_deleted().await?;
    let text = call.store().content(&stack.desired.files).await?;
    Ok(reply::json_bytes(StatusCode::OK, text.into()))
}
