//! `GET …/resources/{name}`: a resource with its current attributes.

use axum::response::Response;
use http::Method;
use kiln_service::Error;
use serde::Serialize;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::resource::{ResourceEntry, StackResources};

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ShowResource",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}",
    rule: Rule::Of("resource:show"),
    tag: "resources",
    summary: "Show a resource",
    query: &[("with_attr", "list")],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

#[derive(Serialize)]
struct One<'a> {
    resource: ResourceEntry<'a>,
}

async fn run(call: &Call) -> Result<Response, ApiError> {
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

#[cfg(test)]
mod tests {
    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_resource_that_does_not_exist_is_not_found() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        let missing = app.get(&format!("{path}/resources/none")).await;
        assert_eq!(
            (missing.status.as_u16(), missing.json()["error"]["type"].clone()),
            (404, "ResourceNotFound".into())
        );
        assert!(missing.text.contains("none") && missing.text.contains("Stack s"), "{}", missing.text);
    }
}
