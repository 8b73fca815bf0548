//! `GET /topology_types`: the types of blueprints and TOSCA that the operator has added, for clients that convert documents.

use std::future::ready;

use axum::response::Response;
use http::Method;
use kiln_value::{Value, value};

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ListTopologyTypes",
    method: Method::GET,
    path: "/{tenant_id}/topology_types",
    rule: Rule::Of("stacks:list_resource_types"),
    tag: "resource types",
    summary: "List the type files for blueprints and TOSCA of the operator",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(ready(Ok(run(call)))),
};

fn run(call: &Call) -> Response {
    let types = &call.api.options.topology_types;
    let types: Value = types.texts().map(|(name, text)| value!({"name": name, "text": text})).collect();
    reply::json(&value!({ "topology_types": types }))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn the_types_of_the_operator_are_listed_with_their_texts() {
        let list = async |app: &App| app.get("/v1/tenant1/topology_types").await.json()["topology_types"].clone();
        let app = App::new().await;
        assert_eq!(list(&app).await, serde_json::json!([]), "those of Kiln are not listed");
        let listed = list(&app.with_type(
            "topology_type: com.example.Cache
derived_from: tosca.nodes.Root
",
        ))
        .await;
        assert_eq!(listed[0]["name"], "com.example.Cache");
        assert!(listed[0]["text"].as_str().unwrap().contains("derived_from: tosca.nodes.Root"));
    }
}
