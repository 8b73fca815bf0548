//! To be written.

use axum::response::Response;

use crate::call::Call;
use crate::error::ApiError;

pub(crate) async fn put(_call: &Call) -> Result<Response, ApiError> {
    Err(ApiError::not_implemented("update_preview"))
}

pub(crate) async fn patch(_call: &Call) -> Result<Response, ApiError> {
    Err(ApiError::not_implemented("update_preview"))
}
