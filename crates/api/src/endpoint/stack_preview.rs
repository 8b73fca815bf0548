//! `POST /stacks/preview`: the stack that a create would produce, and with `resource_changes=true` its plan, in the format
//! of the preview of an update; with `plan=true` instead the document of the plan, and with both all of them.

use axum::response::Response;
use http::Method;
use kiln_plan_document::Action;
use kiln_service::{Door, PreviewedEntry, PreviewedResource, PreviewedStack, Settings};
use kiln_template::StackIdentity;
use kiln_value::{Map, Value, value};
use kiln_view::plan_document;

use super::{Answer, Endpoint, Rule, stack_create};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::Formats;
use crate::http::reply;
use crate::view::planned::Plan;
use crate::view::{self, instant::instant};

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "PreviewStack",
    method: Method::POST,
    path: "/{tenant_id}/stacks/preview",
    rule: Rule::Of("stacks:preview"),
    tag: "stacks",
    summary: "Preview the create of a stack",
    query: &[("resource_changes", "bool"), ("plan", "bool")],
    body: Some(&stack_create::BODY),
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let body = call.instantiation().await?;
    let new = body.create()?;
    let wants_changes = call.query.boolean("resource_changes")?.unwrap_or(false);
    let wants_plan = call.query.boolean("plan")?.unwrap_or(false);
    refuse_preflight(&new.settings, wants_plan)?;
    let preview = call.service().preview_create(&call.caller, new).await.map_err(|error| body.placed(error))?;
    let mut plan = if wants_changes || wants_plan {
        Some(call.service().plan_create(&call.caller, &preview).await?)
    } else {
        None
    };
    if let Some(plan) = plan.as_mut().filter(|_| wants_plan) {
        call.service().preflight_create(&call.caller, plan).await;
    }
    let document = plan.as_ref().filter(|_| wants_plan);
    let mut document =
        document.map(|plan| plan.shown(Door::Plan, |plan| plan_document::Plan::of(plan, Action::Create)));
    if let Some(plan) = &mut document {
        call.service().estimate(&mut plan.0).await?;
    }
    let preview = preview.into_shown(Door::CreatePreview);
    let mut stack = summary(call, &preview);
    stack.insert("resources".to_owned(), preview.resources.iter().map(entry).collect::<Value>());
    let mut answer = Map::from_iter([("stack".to_owned(), stack.into())]);
    if let Some(plan) = plan.filter(|_| wants_changes) {
        answer.extend(plan.shown(Door::CreatePreview, |plan| Plan::of(plan, true)).into_map());
    }
    Ok(match document {
        Some(plan) => view::plan_document::response(plan, None, if wants_changes { answer } else { Map::new() }),
        None => reply::json(&Value::Map(answer)),
    })
}

/// Refuses `preflight` in the body of a preview, which would have no effect: with `plan=true` the check is always made.
pub(super) fn refuse_preflight(settings: &Settings, wants_plan: bool) -> Result<(), ApiError> {
    if settings.preflight && !wants_plan {
        return Err(ApiError::bad_request("A preview has no pre-flight: ask for the plan (plan=true), which has one."));
    }
    Ok(())
}

fn summary(call: &Call, preview: &PreviewedStack) -> Map {
    let (blueprint, identity, settings) = (&preview.blueprint, &preview.identity, &preview.settings);
    let description = blueprint.bound().template().description();
    let outputs = blueprint.outputs().values();
    let outputs: Value = outputs
        .map(|one| {
            let value = preview.outputs.get(&one.name).cloned().unwrap_or_default();
            value!({ "output_key": (&one.name), "description": (&one.description), "output_value": value })
        })
        .collect();
    let shown = value!({
        "stack_name": (&identity.stack_name),
        "id": (&identity.stack_id),
        "links": [{ "href": (call.links.identity(identity)), "rel": "self" }],
        "creation_time": (instant(call.backends().clock.now())),
        "updated_time": null,
        "deletion_time": null,
        "notification_topics": [],
        "parameters": (blueprint.parameters().texts()),
        "description": (&description),
        "template_description": (&description),
        "capabilities": [],
        "disable_rollback": (settings.disable_rollback.unwrap_or(true)),
        "timeout_mins": (settings.timeout_mins),
        "stack_owner": (&call.caller.username),
        "parent": null,
        "stack_user_project_id": null,
        "tags": (settings.tags.clone().unwrap_or_default()),
        "outputs": outputs,
    });
    match shown {
        Value::Map(shown) => shown,
        _ => Map::new(),
    }
}

/// A resource. A resource with a nested stack is replaced by the list of the resources in it.
fn entry(entry: &PreviewedEntry) -> Value {
    match entry {
        PreviewedEntry::Resource(resource) => shown(resource),
        PreviewedEntry::Nested(entries) => entries.iter().map(self::entry).collect(),
    }
}

fn shown(resource: &PreviewedResource) -> Value {
    let mut entry = value!({
        "updated_time": null,
        "creation_time": null,
        "resource_name": (&resource.name),
        "physical_resource_id": "",
        "resource_action": "INIT",
        "resource_status": "COMPLETE",
        "resource_status_reason": "",
        "resource_type": (&resource.resource_type),
        "resource_identity": (address(&resource.stack, &format!("/resources/{}", resource.name))),
        "stack_identity": (address(&resource.stack, "")),
        "stack_name": (&resource.stack.stack_name),
        "required_by": (resource.required_by.iter().collect::<Value>()),
        "description": (&resource.description),
        "metadata": (resource.metadata.clone()),
        "attributes": (resource.attributes.clone()),
        "properties": (resource.properties.clone()),
    });
    if let (Some(parent), Some(entry)) = (&resource.parent, entry.as_map_mut()) {
        entry.insert("parent_resource".to_owned(), parent.into());
    }
    entry
}

fn address(identity: &StackIdentity, path: &str) -> Value {
    value!({
        "tenant": (&identity.tenant),
        "stack_name": (&identity.stack_name),
        "stack_id": (&identity.stack_id),
        "path": path,
    })
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_preview_makes_no_stack() {
        let app = App::new().await;
        let body = json!({"stack_name": "s", "template": (random_string())});
        let preview =
            async |query: &str| app.json(Method::POST, &format!("/v1/tenant1/stacks/preview{query}"), &body).await;
        let resources = preview("").await.json()["stack"]["resources"].clone();
        assert_eq!(resources[0]["resource_type"], "OS::Heat::RandomString");
        let plan = preview("?plan=true").await.json()["plan"].clone();
        assert_eq!(
            (&plan["action"], &plan["resources"][0]["decision"]["at_most"]),
            (&"create".into(), &"create".into())
        );
        let checked = json!({"stack_name": "s", "template": (random_string()), "preflight": true});
        for (query, status) in [("", 400), ("?resource_changes=true", 400), ("?plan=true", 200)] {
            let preview = app.json(Method::POST, &format!("/v1/tenant1/stacks/preview{query}"), &checked).await;
            assert_eq!(preview.status.as_u16(), status, "{query}: {}", preview.text);
        }
        assert_eq!(app.stacks().await, 0);
    }
}
