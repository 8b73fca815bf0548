//! Any method on `/stacks/{name}`: a redirect to the canonical URL of the stack.

use axum::response::Response;
use http::Method;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::page;
use crate::link;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "Lookup",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}",
    rule: Rule::Of("stacks:lookup"),
    tag: "stacks",
    summary: "Find a stack by its name, ID or ARN",
    query: &[],
    body: None,
    answer: Answer::Location,
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let name = call.params.get("stack_name");
    let mut location = match link::from_arn(name) {
        Some(identity) => call.links.identity(&identity),
        None => call.links.stack(&call.service().identify(&call.caller, name).await?),
    };
    let path = call.params.get("path");
    if !path.is_empty() {
        location = format!("{location}/{path}");
    }
    if !call.query.is_empty() {
        location = format!("{location}?{}", call.query.encode());
    }
    Ok(page::found(&call.headers, &location))
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_name_leads_to_the_stack_with_the_rest_of_the_url() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        let found = app.get("/v1/tenant1/stacks/s/resources?limit=1").await;
        assert_eq!(found.status, StatusCode::FOUND);
        assert_eq!(found.header("location"), format!("http://localhost{path}/resources?limit=1"));
        assert_eq!(app.get("/v1/tenant1/stacks/none").await.status, StatusCode::NOT_FOUND);
    }
}
