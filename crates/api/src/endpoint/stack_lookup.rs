//! Any method on `/stacks/{name}`: a redirect to the stack's own address.

use axum::response::Response;
use kiln_store::{Stack, StackId};

use crate::call::Call;
use crate::error::ApiError;
use crate::http::page;
use crate::link;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:lookup")?;
    let name = call.params.get("stack_name");
    let mut location = match link::from_arn(name) {
        Some(identity) => call.links.identity(&identity),
        None => call.links.stack(&identify(call, name).await?),
    };
    let path = call.params.get("path");
    if !path.is_empty() {
        location = format!("{location}/{path}");
    }
    if !call.query.is_empty() {
        location = format!("{location}?{}", call.query.encode());
    }
    Ok(page::found(&call.headers, &location))
}

/// By id, deleted ones too, then by name.
async fn identify(call: &Call, name: &str) -> Result<Stack, ApiError> {
    let store = &call.api.backends.store;
    let mut stack = match name.parse::<StackId>() {
        Ok(id) => store.stack(id).await?.filter(|stack| call.sees(stack)),
        Err(_) => None,
    };
    if stack.is_none() {
        stack = store.stack_by_name(&call.caller.project_id, name).await?;
    }
    stack.ok_or_else(|| ApiError::no_stack(name))
}
