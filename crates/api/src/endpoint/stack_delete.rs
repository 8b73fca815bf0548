//! `DELETE /stacks/{name}/{id}`.

use axum::response::Response;
use http::Method;
use http::StatusCode;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "DeleteStack",
    method: Method::DELETE,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}",
    rule: Rule::Of("stacks:delete"),
    tag: "stacks",
    summary: "Delete a stack",
    query: &[("if_version", "text")],
    body: None,
    answer: Answer::Nothing,
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack().await?;
    // Kiln: what a plan of the delete was computed from.
    call.service().delete_planned(&call.caller, &stack, call.query.given("if_version"), None).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

#[cfg(test)]
mod tests {
    use http::{Method, StatusCode};

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_delete_begins_unless_the_stack_is_another_one_than_was_planned() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        let delete = async |query: &str| app.send(Method::DELETE, &format!("{path}{query}"), None, None).await.status;
        assert_eq!(delete("?if_version=other").await, StatusCode::CONFLICT);
        assert_eq!(app.get(&path).await.json()["stack"]["stack_status"], "CREATE_IN_PROGRESS");
        assert_eq!(delete("").await, StatusCode::NO_CONTENT);
        assert_eq!(app.get(&path).await.json()["stack"]["stack_status"], "DELETE_IN_PROGRESS");
    }
}
