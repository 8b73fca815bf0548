//! `GET /build_info`.

use std::future::ready;

use axum::response::Response;
use http::Method;
use kiln_value::value;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "BuildInfo",
    method: Method::GET,
    path: "/{tenant_id}/build_info",
    rule: Rule::Of("build_info:build_info"),
    tag: "service",
    summary: "Show the version of the service",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(ready(Ok(run(call)))),
};

/// API and engine are one binary with the same revision.
fn run(call: &Call) -> Response {
    let revision = &call.api.options.revision;
    reply::json(&value!({ "api": { "revision": revision }, "engine": { "revision": revision } }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::support::App;

    #[tokio::test]
    async fn api_and_engine_have_one_revision() {
        let shown = App::new().await.get("/v1/tenant1/build_info").await.json();
        let revision = json!({"revision": "unknown"});
        assert_eq!(shown, json!({"api": revision, "engine": revision}));
    }
}
