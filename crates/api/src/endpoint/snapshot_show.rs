//! `GET …/snapshots/{id}`.

use axum::response::Response;
use http::Method;
use kiln_value::value;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::snapshot::snapshot_view;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ShowSnapshot",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/snapshots/{snapshot_id}",
    rule: Rule::Of("stacks:show_snapshot"),
    tag: "snapshots",
    summary: "Show a snapshot",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack().await?;
    let snapshot = call.service().snapshot(&stack, call.params.get("snapshot_id")).await?;
    Ok(reply::json(&value!({ "snapshot": (snapshot_view(&snapshot)) })))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_snapshot_is_shown_with_its_status() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        let made = app.json(Method::POST, &format!("{path}/snapshots"), &json!({"name": "n"})).await.json();
        let show = async |id: &str| app.get(&format!("{path}/snapshots/{id}")).await;
        let shown = show(made["id"].as_str().unwrap()).await.json();
        assert_eq!((&shown["snapshot"]["name"], &shown["snapshot"]["status"]), (&"n".into(), &"IN_PROGRESS".into()));
        assert_eq!(show(&uuid::Uuid::nil().to_string()).await.status.as_u16(), 404);
    }
}
