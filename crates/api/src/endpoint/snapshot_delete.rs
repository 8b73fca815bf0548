//! `DELETE …/snapshots/{id}`.

use axum::response::Response;
use http::Method;
use http::StatusCode;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "DeleteSnapshot",
    method: Method::DELETE,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/snapshots/{snapshot_id}",
    rule: Rule::Of("stacks:delete_snapshot"),
    tag: "snapshots",
    summary: "Delete a snapshot",
    query: &[],
    body: None,
    answer: Answer::Nothing,
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack().await?;
    call.service().delete_snapshot(&stack, call.params.get("snapshot_id")).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

#[cfg(test)]
mod tests {
    use http::Method;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_snapshot_that_does_not_exist_cannot_be_deleted() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        let id = uuid::Uuid::nil();
        let missing = app.send(Method::DELETE, &format!("{path}/snapshots/{id}"), None, None).await;
        assert_eq!(missing.status.as_u16(), 404);
        assert!(missing.text.contains(&id.to_string()), "{}", missing.text);
    }
}
