//! `GET …/snapshots`.

use axum::response::Response;
use http::Method;
use kiln_value::{Value, value};

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::snapshot::snapshot_view;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ListSnapshots",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/snapshots",
    rule: Rule::Of("stacks:list_snapshots"),
    tag: "snapshots",
    summary: "List the snapshots of a stack",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack().await?;
    let snapshots: Value = call.service().snapshots(&stack).await?.iter().map(snapshot_view).collect();
    Ok(reply::json(&value!({ "snapshots": snapshots })))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn the_snapshots_of_a_stack_are_listed() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        let list = async || app.get(&format!("{path}/snapshots")).await.json();
        assert_eq!(list().await, json!({"snapshots": []}));
        let made = app.json(Method::POST, &format!("{path}/snapshots"), &json!({})).await.json();
        assert_eq!(list().await["snapshots"][0]["id"], made["id"]);
    }
}
