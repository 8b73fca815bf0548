//! `GET /resource_types/{name}`: the schema of a type.

use axum::response::Response;
use http::Method;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ShowResourceType",
    method: Method::GET,
    path: "/{tenant_id}/resource_types/{type_name}",
    rule: Rule::Of("stacks:resource_schema"),
    tag: "resource types",
    summary: "Show a resource type",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let name = call.params.get("type_name");
    let found = call.service().available_resource_type(&call.caller, name).await?;
    Ok(reply::json(&found.schema_view(false)))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_type_is_shown_with_its_properties_and_attributes() {
        let app = App::new().await;
        let shown = app.get("/v1/tenant1/resource_types/OS::Heat::Value").await.json();
        assert_eq!(shown["resource_type"], "OS::Heat::Value");
        assert!(
            shown["properties"]["value"]["required"].as_bool().unwrap() && shown["attributes"]["value"].is_object()
        );
        let missing = app.get("/v1/tenant1/resource_types/OS::Heat::Nothing").await;
        assert_eq!((missing.status.as_u16(), missing.json()["error"]["type"].clone()), (404, "EntityNotFound".into()));
    }
}
