//! `GET /stacks/{name}/{id}`.

use axum::response::Response;
use http::Method;
use kiln_resource::Action;
use kiln_service::Door;
use kiln_store::Stack;
use kiln_value::{Map, Value, value};
use kiln_view::Outline;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::{query, reply};
use crate::view::instant::instant;
use crate::view::output::output;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ShowStack",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}",
    rule: Rule::Of("stacks:show"),
    tag: "stacks",
    summary: "Show a stack",
    query: &[("resolve_outputs", "bool")],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let resolve = match call.query.given("resolve_outputs") {
        Some(text) => query::boolean("resolve_outputs", &text.into())?,
        None => true,
    };
    let stack = call.stack_or_deleted().await?;
    let outline = call.service().recent.outline(call.backends(), &stack).await?;
    let mut shown = summary(call, &stack, &outline).await?;
    if resolve && !stack.state.is_complete(Action::Delete) {
        // Clients poll this call while a stack is created, so resources are loaded only if there are outputs.
        let outputs =
            if outline.has_outputs() { call.service().view(stack).await?.outputs(None).await } else { Vec::new() };
        shown.insert("outputs".to_owned(), outputs.iter().map(output).collect());
    }
    Ok(reply::json(&value!({ "stack": shown })))
}

/// Everything except the outputs. Hidden parameters are masked.
async fn summary(call: &Call, stack: &Stack, outline: &Outline) -> Result<Map, ApiError> {
    let mut parameters = outline.parameters.texts();
    call.service().mask_inherited(Door::Parameters, stack, &mut parameters).await?;
    let description = outline.template.description();
    let link = call.links.stack(stack);
    let shown = value!({
        "stack_name": (&stack.name),
        "id": (stack.id.to_string()),
        "links": [{ "href": link, "rel": "self" }],
        "creation_time": (instant(stack.created)),
        "updated_time": (stack.updated.map(instant)),
        "deletion_time": (stack.deleted.map(instant)),
        "notification_topics": [],
        "parameters": parameters,
        "description": (&description),
        "template_description": (&description),
        "capabilities": [],
        "disable_rollback": (stack.disable_rollback),
        "timeout_mins": (stack.timeout_mins),
        "stack_owner": (&stack.username),
        "parent": (stack.parent.as_ref().map(|parent| parent.stack.to_string())),
        "stack_user_project_id": (stack.user_project.clone()),
        "tags": (stack.tags.clone()),
        "stack_status": (stack.state.to_string()),
        "stack_status_reason": (&stack.reason),
    });
    Ok(match shown {
        Value::Map(shown) => shown,
        _ => Map::new(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::support::App;

    #[tokio::test]
    async fn a_stack_is_shown_with_its_outputs_unless_they_are_not_wanted() {
        let app = App::new().await;
        let template = json!({"heat_template_version": "2018-08-31", "outputs": {"o": {"value": "x"}}});
        let path = app.create("s", template).await;
        app.settle("s").await;
        let stack = app.get(&path).await.json()["stack"].clone();
        assert_eq!(
            (&stack["stack_status"], &stack["outputs"][0]["output_value"]),
            (&"CREATE_COMPLETE".into(), &"x".into())
        );
        let without = app.get(&format!("{path}?resolve_outputs=false")).await.json()["stack"].clone();
        assert!(without.get("outputs").is_none(), "{without}");
        let missing = app.get(&path.replace("/s/", "/t/")).await;
        assert_eq!((missing.status.as_u16(), missing.json()["error"]["type"].clone()), (404, "EntityNotFound".into()));
    }
}
