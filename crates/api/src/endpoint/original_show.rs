//! `GET …/original`: the blueprint, plan, service template or package that the template was lowered from.

use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use kiln_stack::load;
use kiln_topology::original::{FILE, Original};

use crate::call::Call;
use crate::error::ApiError;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:template")?;
    let stack = call.stack_or_deleted().await?;
    let sources = load::sources(&call.store().desired(&stack.desired).await?)?;
    let entry = sources.files.0.get(FILE);
    let original = entry.and_then(|entry| Original::of_file(entry, &sources.template)).ok_or_else(|| {
        ApiError::not_found(format!("The template of the stack {} was not made from another document.", stack.name))
    })?;
    let headers = [(CONTENT_TYPE, original.content_type.as_str()), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    Ok((headers, original.content).into_response())
}
