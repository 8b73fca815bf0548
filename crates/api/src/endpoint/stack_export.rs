//! `GET …/export`: the data of a stack with its resources.

use axum::response::Response;
use http::Method;
use kiln_service::Door;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ExportStack",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/export",
    rule: Rule::Of("stacks:export"),
    tag: "stacks",
    summary: "Export a stack",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    call.service().refuse_abandon()?;
    let stack = call.stack().await?;
    Ok(reply::json(&call.service().export_stack(&stack).await?.into_shown(Door::Export)))
}

#[cfg(test)]
mod tests {
    use crate::support::{App, random_string};

    #[tokio::test]
    async fn an_export_is_what_an_abandon_returns_and_changes_nothing() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        assert_eq!(app.get(&format!("{path}/export")).await.status.as_u16(), 400);
        let app = app.with_adoption();
        let data = app.get(&format!("{path}/export")).await.json();
        assert_eq!((&data["name"], &data["resources"]), (&"s".into(), &serde_json::json!({})), "{data}");
        assert_eq!(app.get(&path).await.json()["stack"]["stack_status"], "CREATE_COMPLETE");
    }
}
