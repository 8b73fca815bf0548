//! `GET /report`: what the process that answers does (not in Heat). The text is that of `SIGUSR2`.

use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::call::Call;
use crate::error::ApiError;

/// 404 without a reporter: a process of one user (`--local`, `demo`) has none.
pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("service:report")?;
    let Some(reporter) = &call.api.options.reporter else {
        return Err(ApiError::not_found("This service does not report on itself."));
    };
    let text = reporter.report().await;
    Ok(([(CONTENT_TYPE, "text/plain; charset=UTF-8"), (CACHE_CONTROL, "no-store")], text).into_response())
}
