//! To be written.

use axum::response::Response;

use crate::call::Call;
use crate::error::ApiError;

pub(crate) async fn run(_call: &Call) -> Result<Response, ApiError> {
    Err(ApiError::not_implemented("stack_preview"))
}
