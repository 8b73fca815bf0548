//! `POST …/drift/repair` and `…/drift/accept`: plans that end drift. Heat has no such calls.

use std::collections::BTreeSet;

use axum::response::Response;
use http::{Method, StatusCode};
use kiln_identity::{DefaultCheck, DefaultRule};
use kiln_service::{AcceptedDrift, AcceptedValue, Written};
use kiln_store::Stack;
use kiln_value::{Map, Value, value};
use serde::Serialize;

use super::plan::{Shown, paths, shown};
use super::stack_drift::refused;
use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::openapi::schema;

pub(super) static REPAIR: Endpoint = Endpoint {
    name: "RepairDrift",
    method: Method::POST,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/drift/repair",
    rule: Rule::Kiln(&[DefaultRule { name: "drift:repair", check: DefaultCheck::MEMBER }]),
    tag: "stacks",
    summary: "Save a plan that gives drifted objects the values of the template again",
    query: &[],
    body: Some(&REPAIRED),
    answer: Answer::Json(200),
    run: |call| Box::pin(repair(call)),
};

pub(super) static ACCEPT: Endpoint = Endpoint {
    name: "AcceptDrift",
    method: Method::POST,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/drift/accept",
    rule: Rule::Kiln(&[DefaultRule { name: "drift:accept", check: DefaultCheck::MEMBER }]),
    tag: "stacks",
    summary: "Save a plan that writes the values of drifted objects into the template, and changes no object",
    query: &[],
    body: Some(&ACCEPTED),
    answer: Answer::Json(200),
    run: |call| Box::pin(accept(call)),
};

static REPAIRED: Body = Body {
    name: "RepairDrift",
    required: false,
    is_template: false,
    schema: || {
        let mut properties = chosen();
        properties.insert("replace".to_owned(), value!({ "type": "boolean" }));
        value!({ "type": "object", "properties": properties })
    },
};

static ACCEPTED: Body = Body {
    name: "AcceptDrift",
    required: false,
    is_template: false,
    schema: || value!({ "type": "object", "properties": (chosen()) }),
};

fn chosen() -> Map {
    Map::from_iter([("resources".to_owned(), value!({ "type": "array", "items": (schema::text()) }))])
}

#[derive(Serialize)]
struct Planned {
    /// `None`: nothing has drifted.
    plan: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<Value>,
}

async fn repair(call: &Call) -> Result<Response, ApiError> {
    let (stack, resources) = request(call).await?;
    let replace = call.body.as_ref().and_then(|body| body.get("replace")).is_some_and(Value::is_truthy);
    let saved = call.service().plan_repair(&call.caller, stack, &resources, replace).await.map_err(refused)?;
    let plan = match &saved {
        Some(saved) => Some(shown(call, saved).await?),
        None => None,
    };
    Ok(reply::json_with(StatusCode::OK, &Planned { plan, accepted: None }))
}

async fn accept(call: &Call) -> Result<Response, ApiError> {
    let (stack, resources) = request(call).await?;
    let accepted = call.service().accept_drift(&call.caller, stack, &resources).await.map_err(refused)?;
    let planned = match &accepted {
        Some(AcceptedDrift { plan, values }) => {
            Planned { plan: Some(shown(call, plan).await?), accepted: Some(values.iter().map(view).collect()) }
        }
        None => Planned { plan: None, accepted: None },
    };
    Ok(reply::json_with(StatusCode::OK, &planned))
}

/// The stack, and the paths of the resources that the body names.
async fn request(call: &Call) -> Result<(Stack, Vec<String>), ApiError> {
    for rule in ["resource:show", "stacks:update"] {
        call.allow(rule)?;
    }
    let body = call.body.as_ref().and_then(Value::as_map).cloned().unwrap_or_default();
    let resources: BTreeSet<String> = paths(&body, "resources")?;
    let stack = call.stack().await?;
    call.service().refuse_stack_user(&call.caller)?;
    Ok((stack, resources.into_iter().collect()))
}

fn view(accepted: &AcceptedValue) -> Value {
    let (parameter, file, keys) = match &accepted.written {
        Written::Parameter(name) => (Some(name.as_str()), None, Value::Null),
        Written::Template { file, keys } => (None, file.as_deref(), keys.iter().map(String::as_str).collect()),
    };
    value!({
        "resource_name": (&accepted.resource),
        "property": (&accepted.property),
        "parameter": parameter,
        "file": file,
        "keys": keys,
        "value": (accepted.value.clone()),
    })
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn without_drift_nothing_is_planned() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        for verb in ["repair", "accept"] {
            let planned = app.json(Method::POST, &format!("{path}/drift/{verb}"), &json!({})).await;
            assert_eq!((planned.status.as_u16(), planned.json()), (200, json!({"plan": null})));
            let missing =
                app.json(Method::POST, &format!("{path}/drift/{verb}"), &json!({"resources": ["none"]})).await;
            assert_eq!(missing.status.as_u16(), 404, "{}", missing.text);
        }
        assert_eq!(app.get("/v1/tenant1/plans").await.json()["plans"], json!([]));
    }
}
