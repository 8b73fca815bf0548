//! `GET …/template`.

use axum::response::Response;
use http::Method;
use http::StatusCode;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ShowTemplate",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/template",
    rule: Rule::Of("stacks:template"),
    tag: "stacks",
    summary: "Show the template of a stack",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

/// The template is stored as JSON and sent unchanged.
async fn run(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack_or_deleted().await?;
    let text = call.store().content(&stack.desired.template).await?;
    Ok(reply::json_bytes(StatusCode::OK, text.into()))
}

#[cfg(test)]
mod tests {
    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_template_is_shown_as_it_was_sent() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        assert_eq!(app.get(&format!("{path}/template")).await.json(), random_string());
    }
}
