//! `…/refactors`: resources move between stacks. Heat has no such call.

use std::collections::BTreeMap;

use axum::response::Response;
use http::Method;
use kiln_identity::{DefaultCheck, DefaultRule};
use kiln_service::{MovedResource, PlaceOfResource, RefactorPlan, RefactorStacks, ResourceMove};
use kiln_store::StackId;
use kiln_value::{Map, Value, value};

use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::Formats;
use crate::http::reply;
use crate::instantiation::Instantiation;
use crate::openapi::schema;

pub(super) static CREATE: Endpoint = Endpoint {
    name: "RefactorStacks",
    method: Method::POST,
    path: "/{tenant_id}/refactors",
    rule: Rule::Kiln(&[DefaultRule { name: "refactors:create", check: DefaultCheck::MEMBER }]),
    tag: "refactors",
    summary: "Move resources between stacks, without a change of their objects",
    query: &[("dry_run", "bool")],
    body: Some(&BODY),
    answer: Answer::Json(200),
    run: |call| Box::pin(create(call)),
};

/// What the entry of a stack may have, beside its name: what says how the stack is afterwards.
const CONTENT: [&str; 8] = [
    "template",
    "template_url",
    "files",
    "files_container",
    "environment",
    "environment_files",
    "parameters",
    "clear_parameters",
];

static BODY: Body = Body {
    name: "RefactorStacks",
    required: true,
    is_template: true,
    schema: || {
        let mut properties = schema::template();
        properties.retain(|name, _| CONTENT.contains(&name.as_str()));
        let names = value!({ "type": "array", "items": { "type": "string" } });
        properties.insert("clear_parameters".to_owned(), names);
        properties.insert("stack".to_owned(), schema::text());
        let stack = value!({ "type": "object", "required": ["stack"], "properties": properties });
        let one = value!({ "type": "object", "required": ["from", "to"], "properties": {
            "from": (schema::text()), "to": (schema::text()),
        } });
        value!({ "type": "object", "required": ["stacks"], "properties": {
            "stacks": { "type": "array", "items": stack },
            "moves": { "type": "array", "items": one },
        } })
    },
};

async fn create(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:update")?;
    let body = call.body()?;
    let given = body.get("stacks").and_then(Value::as_list).unwrap_or_default();
    let (mut stacks, mut names) = (Vec::with_capacity(given.len()), BTreeMap::new());
    for entry in given {
        let (Some(entry), Some(name)) = (entry.as_map(), entry.str_at("stack")) else {
            return Err(ApiError::bad_request("Each of the stacks needs its name or ID as stack."));
        };
        if let Some(other) = entry.keys().find(|key| *key != "stack" && !CONTENT.contains(&key.as_str())) {
            return Err(ApiError::bad_request(format!("{other} is not supported in a refactoring.")));
        }
        let stack = call.service().identify(&call.caller, name).await?;
        let content = Instantiation::gather(entry, call.service(), &call.caller).await?;
        names.insert(name.to_owned(), stack.id);
        names.insert(stack.name.clone(), stack.id);
        stacks.push((stack, content.update(true)?));
    }
    if stacks.is_empty() {
        return Err(ApiError::bad_request("No stacks are given."));
    }
    let refactor = RefactorStacks { stacks, moves: moves(body, &names)? };
    let plan = if call.query.boolean("dry_run")?.unwrap_or(false) {
        call.service().plan_refactor(&call.caller, refactor).await?
    } else {
        call.service().refactor_stacks(&call.caller, refactor).await?
    };
    Ok(reply::json(&value!({ "refactor": (view(&plan)) })))
}

fn moves(body: &Map, stacks: &BTreeMap<String, StackId>) -> Result<Vec<ResourceMove>, ApiError> {
    let place = |entry: &Value, key: &str| {
        let text = entry.str_at(key).unwrap_or_default();
        let Some((stack, resource)) = text.split_once('/').filter(|(_, resource)| !resource.is_empty()) else {
            return Err(ApiError::bad_request("A move has from and to, each as STACK/RESOURCE."));
        };
        match stacks.get(stack) {
            None => Err(ApiError::bad_request(format!("{text}: the stack {stack} is not among the given ones."))),
            Some(stack) => Ok(PlaceOfResource { stack: *stack, resource: resource.to_owned() }),
        }
    };
    let given = body.get("moves").and_then(Value::as_list).unwrap_or_default();
    given.iter().map(|entry| Ok(ResourceMove { from: place(entry, "from")?, to: place(entry, "to")? })).collect()
}

fn view(plan: &RefactorPlan) -> Value {
    let moved = |one: &MovedResource| {
        value!({
            "from": (&one.from),
            "to": (&one.to),
            "resource_type": (&one.resource_type),
            "physical_resource_id": (one.physical_id.clone()),
        })
    };
    value!({
        "moves": (plan.moves.iter().map(moved).collect::<Value>()),
        "obstacles": (plan.obstacles.iter().collect::<Value>()),
        "updating": (plan.updating.iter().collect::<Value>()),
    })
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::{Value, json};

    use crate::support::{App, user};

    fn template(names: &[&str]) -> Value {
        let resources: serde_json::Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), json!({"type": "OS::Heat::RandomString"}))).collect();
        json!({"heat_template_version": "2018-08-31", "resources": resources})
    }

    /// A stack with one resource leaves it to another stack.
    async fn moved(app: &App, from: &str, to: &str) -> crate::support::Answer {
        let (none, all) = (template(&[]), template(&["a"]));
        let body = json!({"stacks": [{"stack": from, "template": none}, {"stack": to, "template": all}]});
        app.json(Method::POST, "/v1/tenant1/refactors", &body).await
    }

    #[tokio::test]
    async fn stacks_of_others_stay_and_so_do_those_that_need_plans() {
        let app = App::new().await;
        app.create("mine", template(&["a"])).await;
        app.settle("mine").await;
        let bob = kiln_identity::Caller { user_id: "bob-id".to_owned(), ..user(&["member", "reader"]) };
        let of_bob = app.clone().used_by(bob);
        of_bob.create("theirs", template(&[])).await;
        app.settle("theirs").await;
        for caller in [&app, &of_bob] {
            let refused = moved(caller, "mine", "theirs").await;
            assert!(
                refused.status.as_u16() == 409 && refused.text.contains("belong to different users"),
                "{refused:?}"
            );
        }
        app.create("other", template(&[])).await;
        app.settle("other").await;
        let refused = moved(&app.clone().demanding_plans(0), "mine", "other").await;
        assert!(refused.status.as_u16() == 409 && refused.text.contains("Changes need a saved plan"), "{refused:?}");
        let reader = app.clone().used_by(user(&["reader"]));
        assert_eq!(moved(&reader, "mine", "other").await.status.as_u16(), 403);
        let foreign = kiln_identity::Caller { project_id: "tenant2".to_owned(), ..user(&["member", "reader"]) };
        let body = json!({"stacks": [{"stack": "mine"}]});
        let answer = app.clone().used_by(foreign).json(Method::POST, "/v1/tenant2/refactors", &body).await;
        assert_eq!(answer.status.as_u16(), 404, "{answer:?}");
    }

    #[tokio::test]
    async fn what_is_given_is_checked() {
        let app = App::new().await;
        app.create("web", template(&["a"])).await;
        let of = async |body| app.json(Method::POST, "/v1/tenant1/refactors", &body).await;
        for (body, status, why) in [
            (json!({}), 400, "No stacks are given"),
            (json!({"stacks": [{"template": {}}]}), 400, "its name or ID"),
            (json!({"stacks": [{"stack": "nobody"}]}), 404, "nobody"),
            (json!({"stacks": [{"stack": "web", "tags": "a"}]}), 400, "tags is not supported in a refactoring"),
            (json!({"stacks": [{"stack": "web"}], "moves": [{"from": "web"}]}), 400, "STACK/RESOURCE"),
            (json!({"stacks": [{"stack": "web"}], "moves": [{"from": "web/a", "to": "db/a"}]}), 400, "not among"),
            (json!({"stacks": [{"stack": "web", "template": (template(&["b"]))}]}), 409, "in progress"),
        ] {
            let refused = of(body).await;
            assert!(refused.status.as_u16() == status && refused.text.contains(why), "{refused:?}");
        }
    }
}
