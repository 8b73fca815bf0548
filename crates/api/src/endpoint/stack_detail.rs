//! `GET /stacks/detail`: the list without filters.

use axum::response::Response;
use http::Method;
use kiln_store::StackQuery;
use serde::Serialize;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::stack::ListEntry;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "DetailStacks",
    method: Method::GET,
    path: "/{tenant_id}/stacks/detail",
    rule: Rule::Of("stacks:detail"),
    tag: "stacks",
    summary: "List stacks with their details",
    query: super::stack_list::STACKS,
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

#[derive(Serialize)]
struct All<'a> {
    stacks: Vec<ListEntry<'a>>,
}

async fn run(call: &Call) -> Result<Response, ApiError> {
    let query = StackQuery {
        project: Some(call.caller.project_id.clone()),
        not_tags_any: call.api.options.hidden_stack_tags.clone(),
        ..StackQuery::default()
    };
    let stacks = call.store().stack_summaries(&query).await?;
    Ok(reply::json(&All { stacks: stacks.iter().map(|stack| ListEntry::new(stack, &call.links, false)).collect() }))
}

#[cfg(test)]
mod tests {
    use crate::support::{App, random_string};

    #[tokio::test]
    async fn all_stacks_are_listed_whatever_the_query_says() {
        let app = App::new().await;
        app.create("one", random_string()).await;
        app.create("two", random_string()).await;
        let listed = app.get("/v1/tenant1/stacks/detail?name=one&limit=1").await.json();
        let mut names: Vec<_> =
            listed["stacks"].as_array().unwrap().iter().map(|one| one["stack_name"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["one", "two"], "as in Heat, it takes no filters");
    }
}
