//! `GET …/resources/{name}/metadata`.

use axum::response::Response;
use http::Method;
use kiln_value::value;

use super::resource_show::{missing, resources};
use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ShowMetadata",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}/metadata",
    rule: Rule::Of("resource:metadata"),
    tag: "resources",
    summary: "Show the metadata of a resource",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let resources = resources(call).await?;
    let row = resources.row(call.params.get("resource_name")).ok_or_else(|| missing(call))?;
    let metadata = call.service().metadata_of(&resources.view.stack, row).await?;
    Ok(reply::json(&value!({ "metadata": metadata })))
}

#[cfg(test)]
mod tests {
    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_resource_that_does_not_exist_has_no_metadata() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        let missing = app.get(&format!("{path}/resources/none/metadata")).await;
        assert_eq!(
            (missing.status.as_u16(), missing.json()["error"]["type"].clone()),
            (404, "ResourceNotFound".into())
        );
    }
}
