//! Any method on `/stacks/{name}`: a redirect to the canonical URL of the stack.

use axum::response::Response;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::page;
use crate::link;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:lookup")?;
    let name = call.params.get("stack_name");
    let mut location = match link::from_arn(name) {
        Some(identity) => call.links.identity(&identity),
        None => call.links.stack(&call.service().identify(&call.caller, name).await?),
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
