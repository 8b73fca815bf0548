//! `GET /resource_types`.

use axum::response::Response;
use http::Method;
use kiln_resource::ResourceType;
use kiln_service::ResourceTypeFilter;
use kiln_value::{Class, Value, value};

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::{query, reply};

/// The query parameters.
pub(super) const TYPES: &[(&str, &str)] =
    &[("name", "text"), ("support_status", "text"), ("version", "text"), ("with_description", "bool")];

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ListResourceTypes",
    method: Method::GET,
    path: "/{tenant_id}/resource_types",
    rule: Rule::Of("stacks:list_resource_types"),
    tag: "resource types",
    summary: "List the resource types",
    query: TYPES,
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

/// The valid values of `support_status`.
const STATUSES: [&str; 5] = ["UNKNOWN", "SUPPORTED", "DEPRECATED", "UNSUPPORTED", "HIDDEN"];

async fn run(call: &Call) -> Result<Response, ApiError> {
    let with_description = match call.query.given("with_description") {
        Some(text) => query::boolean("with_description", &text.into())?,
        None => false,
    };
    let status = call.query.given("support_status");
    if status.is_some_and(|status| !STATUSES.contains(&status)) {
        let words = STATUSES.map(|word| format!("'{word}'")).join(", ");
        let reason = format!("Invalid support status and should be one of ({words})");
        return Err(ApiError::new(Class::Invalid, format!("Data supplied was not valid: {reason}")));
    }
    let filter = ResourceTypeFilter { name: call.query.given("name"), status, version: call.query.given("version") };
    let types = call.service().resource_types(&call.caller, filter).await;
    let types: Value = types.into_iter().map(|resource_type| entry(resource_type, with_description)).collect();
    Ok(reply::json(&value!({ "resource_types": types })))
}

fn entry(resource_type: &ResourceType, with_description: bool) -> Value {
    let name = Value::from(&resource_type.name);
    if with_description {
        return value!({ "resource_type": name, "description": (&resource_type.summary) });
    }
    name
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn types_are_listed_by_name_with_their_descriptions_on_request() {
        let app = App::new().await;
        let list =
            async |query: &str| app.get(&format!("/v1/tenant1/resource_types?name=OS::Heat::Value{query}")).await;
        assert_eq!(list("").await.json(), serde_json::json!({"resource_types": ["OS::Heat::Value"]}));
        let described = list("&with_description=true").await.json()["resource_types"][0].clone();
        assert_eq!(described["resource_type"], "OS::Heat::Value");
        assert!(!described["description"].as_str().unwrap().is_empty());
        let refused = list("&support_status=NEW").await;
        assert!(refused.status.as_u16() == 400 && refused.text.contains("Invalid support status"), "{refused:?}");
    }
}
