//! `POST …/snapshots/{id}/restore`.

use axum::response::Response;
use http::Method;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::page;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "RestoreSnapshot",
    method: Method::POST,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/snapshots/{snapshot_id}/restore",
    rule: Rule::Of("stacks:restore_snapshot"),
    tag: "snapshots",
    summary: "Restore a snapshot",
    query: &[],
    body: None,
    answer: Answer::Page,
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack().await?;
    call.service().restore_snapshot(&call.caller, &stack, call.params.get("snapshot_id")).await?;
    Ok(page::accepted(&call.headers))
}

#[cfg(test)]
mod tests {
    use http::Method;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_snapshot_that_does_not_exist_cannot_be_restored() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        let restore = format!("{path}/snapshots/{}/restore", uuid::Uuid::nil());
        assert_eq!(app.send(Method::POST, &restore, None, None).await.status.as_u16(), 404);
        assert_eq!(app.get(&path).await.json()["stack"]["stack_status"], "CREATE_COMPLETE");
    }
}
