//! `…/revisions`: the templates, environments and files that a stack had. Heat has no such call.

use axum::response::Response;
use http::Method;
use kiln_store::Operations;
use kiln_value::{Value, value};

use super::operation::{query, view};
use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static LIST: Endpoint = Endpoint {
    name: "ListRevisions",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/revisions",
    rule: Rule::Of("stacks:template"),
    tag: "stacks",
    summary: "List the operations that set the template of a stack, newest first",
    query: &[("limit", "integer"), ("marker", "text")],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(list(call)),
};

pub(super) static SHOW: Endpoint = Endpoint {
    name: "ShowRevision",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/revisions/{revision}",
    rule: Rule::Of("stacks:template"),
    tag: "stacks",
    summary: "Show the template, environment and files of a revision",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(show(call)),
};

async fn list(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack_or_deleted().await?;
    let operations = call.service().operations(&query(call, Operations::Revisions(stack.id))?).await?;
    Ok(reply::json(&value!({ "revisions": (operations.iter().map(view).collect::<Value>()) })))
}

async fn show(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack_or_deleted().await?;
    for rule in ["stacks:environment", "stacks:files"] {
        call.enforce(rule, call.project())?;
    }
    let revision = call.service().revision(&stack, call.params.get("revision")).await?;
    let mut shown = view(&revision.listed);
    if let Some(shown) = shown.as_map_mut() {
        shown.insert("template".to_owned(), Value::clone(&revision.template));
        shown.insert("environment".to_owned(), revision.environment);
        let files = revision.files.0.iter().map(|(name, text)| (name.clone(), Value::from(text.as_str())));
        shown.insert("files".to_owned(), Value::Map(files.collect()));
    }
    Ok(reply::json(&value!({ "revision": shown })))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn each_template_of_a_stack_is_a_revision() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        let template = json!({"heat_template_version": "2018-08-31", "description": "second"});
        app.json(Method::PUT, &path, &json!({"template": template})).await;
        let listed = app.get(&format!("{path}/revisions")).await.json();
        let numbers: Vec<_> = listed["revisions"].as_array().unwrap().iter().map(|one| &one["revision"]).collect();
        assert_eq!(numbers, [2, 1]);
        let shown = app.get(&format!("{path}/revisions/2")).await.json();
        assert_eq!(shown["revision"]["template"]["description"], "second");
        assert_eq!(app.get(&format!("{path}/revisions/9")).await.status.as_u16(), 404);
    }
}
