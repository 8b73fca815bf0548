//! `GET …/resources/{name}`: a resource with its current attributes.

use axum::response::Response;
use kiln_service::Error;
use serde::Serialize;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::resource::{ResourceEntry, StackResources};

#[derive(Serialize)]
struct One<'a> {
    resource: ResourceEntry<'a>,
}

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("resource:show")?;
    let resources = resources(call).await?;
    let row = resources.row(call.params.get("resource_name")).ok_or_else(|| missing(call))?;
    let detail = resources.detail(row, &call.query.all("with_attr")).await;
    Ok(reply::json(&One { resource: resources.entry(row, &call.links).with(Some(detail)) }))
}

/// The resources of the live stack of the path. Stack users can access only their own resource.
pub(super) async fn resources(call: &Call) -> Result<StackResources, ApiError> {
    let stack = call.stack().await?;
    let resources = StackResources::new(call.backends(), call.service().view(stack).await?).await?;
    let name = call.params.get("resource_name");
    call.service().refuse_other_stack_user(&call.caller, name, resources.rows())?;
    Ok(resources)
}

/// The error for a missing resource.
pub(super) fn missing(call: &Call) -> ApiError {
    let (resource, stack) = (call.params.get("resource_name"), call.params.get("stack_name"));
    Error::NoResource { resource: resource.to_owned(), stack: stack.to_owned() }.into()
}
