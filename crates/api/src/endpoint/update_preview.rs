//! `PUT` and `PATCH …/preview`: the effect of an update, according to the plan that the update itself would follow.

use std::collections::BTreeSet;

use axum::response::Response;
use http::Method;
use kiln_plan_document::Action;
use kiln_service::{Door, PlannedRequest};
use kiln_value::{Map, Value};
use kiln_view::plan_document::Plan;

use super::stack_preview::refuse_preflight;
use super::{Answer, Endpoint, Rule, stack_update};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::Formats;
use crate::http::reply;
use crate::view::{plan_document, planned};

const QUERY: &[(&str, &str)] = &[
    ("show_nested", "bool"),
    ("plan", "bool"),
    ("resource_changes", "bool"),
    ("replace", "list"),
    ("refresh", "bool"),
];

pub(super) static PUT: Endpoint = Endpoint {
    name: "PreviewUpdate",
    method: Method::PUT,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/preview",
    rule: Rule::Of("stacks:preview_update"),
    tag: "stacks",
    summary: "Preview an update",
    query: QUERY,
    body: Some(&stack_update::BODY),
    answer: Answer::Json(200),
    run: |call| Box::pin(put(call)),
};

pub(super) static PATCH: Endpoint = Endpoint {
    name: "PreviewPatch",
    method: Method::PATCH,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/preview",
    rule: Rule::Of("stacks:preview_update_patch"),
    tag: "stacks",
    summary: "Preview an update of parts",
    query: QUERY,
    body: Some(&stack_update::BODY),
    answer: Answer::Json(200),
    run: |call| Box::pin(patch(call)),
};

async fn put(call: &Call) -> Result<Response, ApiError> {
    Box::pin(run(call, false)).await
}

async fn patch(call: &Call) -> Result<Response, ApiError> {
    Box::pin(run(call, true)).await
}

/// Heat's lists, and in addition the outputs that change and the version of the stack, which an update can name
/// (`if_version`); with `plan=true` instead the document of the plan, and with `resource_changes=true` both. With
/// `refresh=true` it is the document, after the objects that the update changes or deletes are read.
async fn run(call: &Call, patch: bool) -> Result<Response, ApiError> {
    let body = call.instantiation().await?;
    let nested = call.query.boolean("show_nested")?.unwrap_or(false);
    let update = body.update(patch)?;
    let replaced: BTreeSet<String> = call.query.all("replace").into_iter().collect();
    let stack = call.stack().await?;
    if call.query.boolean("refresh")?.unwrap_or(false) {
        let request = PlannedRequest::Update(Box::new(stack), update, replaced);
        let plan = call.service().refreshed_plan(&call.caller, request).await.map_err(|error| body.placed(error))?;
        return Ok(plan_document::refreshed(plan));
    }
    let wants_plan = call.query.boolean("plan")?.unwrap_or(false);
    refuse_preflight(&update.settings, wants_plan)?;
    let previewed = call.service().preview_replacements(&call.caller, stack, update, replaced).await;
    let mut previewed = previewed.map_err(|error| body.placed(error))?;
    if wants_plan {
        call.service().preflight_update(&mut previewed).await;
    }
    let wants_lists = call.query.boolean("resource_changes")?.unwrap_or(!wants_plan);
    let lists = previewed.shown(Door::UpdatePreview, |update| {
        if !wants_lists {
            return Map::new();
        }
        let mut lists = planned::Plan::of(&update.preview, nested).into_map();
        lists.insert("version".to_owned(), update.version.as_str().into());
        lists
    });
    let response = if wants_plan {
        let mut plan = previewed.shown(Door::Plan, |update| Plan::of(&update.preview, Action::Update));
        call.service().estimate(&mut plan.0).await?;
        plan_document::response(plan, Some(previewed.expose().version.clone()), lists)
    } else {
        reply::json(&Value::Map(lists))
    };
    // The client need not wait until a large plan is freed.
    tokio::task::spawn_blocking(move || drop(previewed));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn an_update_is_previewed_as_lists_or_as_a_plan() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        let body = json!({"template": (random_string())});
        let preview = async |query: &str| app.json(Method::PUT, &format!("{path}/preview{query}"), &body).await;
        let lists = preview("").await.json();
        assert_eq!(lists["resource_changes"]["added"][0]["resource_name"], "one", "{lists}");
        for query in ["?plan=true", "?refresh=true"] {
            let plan = preview(query).await.json()["plan"].clone();
            assert_eq!((&plan["action"], &plan["resources"][0]["path"]), (&"update".into(), &"one".into()), "{plan}");
        }
        assert_eq!(preview("?replace=none").await.status.as_u16(), 404);
        assert_eq!(preview("?refresh=true&replace=none").await.status.as_u16(), 404);
        assert_eq!(app.get(&path).await.json()["stack"]["stack_status"], "CREATE_COMPLETE");
    }
}
