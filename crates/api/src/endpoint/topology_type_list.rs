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
