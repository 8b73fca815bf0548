//! `GET …/preview_delete`: the plan of a delete. Heat has no such call.

use axum::response::Response;
use http::Method;
use kiln_plan_document::Action;
use kiln_service::{Door, PlannedRequest};
use kiln_value::Map;
use kiln_view::plan_document::Plan;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::Formats as _;
use crate::view::plan_document;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "PreviewDelete",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/preview_delete",
    // Who may not delete a stack plans no delete.
    rule: Rule::Of("stacks:delete"),
    tag: "stacks",
    summary: "Preview the delete of a stack",
    query: &[("refresh", "bool")],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack().await?;
    if call.query.boolean("refresh")?.unwrap_or(false) {
        let plan = call.service().refreshed_plan(&call.caller, PlannedRequest::Delete(Box::new(stack))).await?;
        return Ok(plan_document::refreshed(plan));
    }
    let previewed = call.service().preview_delete(stack).await?;
    let mut plan = previewed.shown(Door::Plan, |(preview, _)| Plan::of(preview, Action::Delete));
    call.service().estimate(&mut plan.0).await?;
    Ok(plan_document::response(plan, Some(previewed.expose().1.clone()), Map::new()))
}

#[cfg(test)]
mod tests {
    use crate::support::{App, random_string};

    #[tokio::test]
    async fn the_plan_of_a_delete_changes_nothing() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        for query in ["", "?refresh=true"] {
            let plan = app.get(&format!("{path}/preview_delete{query}")).await.json();
            assert_eq!((&plan["plan"]["action"], &plan["plan"]["stack"]), (&"delete".into(), &"s".into()), "{plan}");
            assert!(plan["plan"]["version"].is_string(), "a delete can name it: {plan}");
        }
        assert_eq!(app.get(&format!("{path}/preview_delete?refresh=x")).await.status.as_u16(), 400);
        assert_eq!(app.get(&path).await.json()["stack"]["stack_status"], "CREATE_COMPLETE");
    }
}
