//! `/plans`: changes of stacks that are prepared, and executed later exactly as shown. Heat has no such call.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::response::Response;
use http::Method;
use http::StatusCode;
use kiln_identity::{DefaultCheck, DefaultRule};
use kiln_plan_document::PlanDocument;
use kiln_resource::Action;
use kiln_service::{BYPASS, Error, PlannedRequest, SavedPlan};
use kiln_store::{Approval, Author, PlanQuery, Stack, StackId};
use kiln_value::{Map, Value, text, value};
use serde::Serialize;

use super::{Answer, Body, Endpoint, Rule, stack_create, stack_update};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::{self, Formats, LONGEST_LIST};
use crate::http::reply;
use crate::link::Link;
use crate::openapi::schema;
use crate::view::instant::instant;

pub(super) static CREATE: Endpoint = Endpoint {
    name: "CreatePlan",
    method: Method::POST,
    path: "/{tenant_id}/plans",
    rule: Rule::Kiln(&[
        DefaultRule { name: "plans:create", check: DefaultCheck::MEMBER },
        DefaultRule { name: BYPASS, check: DefaultCheck::NOBODY },
    ]),
    tag: "plans",
    summary: "Save the plan of a create, an update or a delete",
    query: &[],
    body: Some(&BODY),
    answer: Answer::Json(201),
    run: |call| Box::pin(create(call)),
};

pub(super) static LIST: Endpoint = Endpoint {
    name: "ListPlans",
    method: Method::GET,
    path: "/{tenant_id}/plans",
    rule: Rule::Kiln(&[DefaultRule { name: "plans:index", check: DefaultCheck::READER }]),
    tag: "plans",
    summary: "List saved plans and change sets, newest first",
    query: &[("stack", "text"), ("limit", "integer"), ("marker", "text")],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(list(call)),
};

pub(super) static SHOW: Endpoint = Endpoint {
    name: "ShowPlan",
    method: Method::GET,
    path: "/{tenant_id}/plans/{plan_id}",
    rule: Rule::Kiln(&[DefaultRule { name: "plans:show", check: DefaultCheck::READER }]),
    tag: "plans",
    summary: "Show a saved plan with its document",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(show(call)),
};

pub(super) static DELETE: Endpoint = Endpoint {
    name: "DeletePlan",
    method: Method::DELETE,
    path: "/{tenant_id}/plans/{plan_id}",
    rule: Rule::Kiln(&[DefaultRule { name: "plans:delete", check: DefaultCheck::MEMBER }]),
    tag: "plans",
    summary: "Delete a saved plan",
    query: &[],
    body: None,
    answer: Answer::Nothing,
    run: |call| Box::pin(delete(call)),
};

pub(super) static EXECUTE: Endpoint = Endpoint {
    name: "ExecutePlan",
    method: Method::POST,
    path: "/{tenant_id}/plans/{plan_id}/execute",
    rule: Rule::Kiln(&[DefaultRule { name: "plans:execute", check: DefaultCheck::MEMBER }]),
    tag: "plans",
    summary: "Execute a saved plan, or refuse it if the stack has changed since",
    query: &[],
    body: Some(&EXECUTED),
    answer: Answer::Json(202),
    run: |call| Box::pin(execute(call)),
};

pub(super) static APPROVE: Endpoint = Endpoint {
    name: "ApprovePlan",
    method: Method::POST,
    path: "/{tenant_id}/plans/{plan_id}/approve",
    rule: Rule::Kiln(&[DefaultRule { name: "plans:approve", check: DefaultCheck::MEMBER }]),
    tag: "plans",
    summary: "Approve a saved plan that another user has made",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(approve(call)),
};

pub(super) static RENEW: Endpoint = Endpoint {
    name: "RenewPlan",
    method: Method::POST,
    path: "/{tenant_id}/plans/{plan_id}/renew",
    rule: Rule::Kiln(&[DefaultRule { name: "plans:renew", check: DefaultCheck::MEMBER }]),
    tag: "plans",
    summary: "Make a saved plan again, for the present state of its stack",
    query: &[],
    body: None,
    answer: Answer::Json(201),
    run: |call| Box::pin(renew(call)),
};

pub(super) static REJECT: Endpoint = Endpoint {
    name: "RejectPlan",
    method: Method::POST,
    path: "/{tenant_id}/plans/{plan_id}/reject",
    rule: Rule::Kiln(&[DefaultRule { name: "plans:reject", check: DefaultCheck::MEMBER }]),
    tag: "plans",
    summary: "Reject a saved plan: nobody can execute it any more",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(reject(call)),
};

/// The body of a create or an update, and what is only about the plan.
static BODY: Body = Body {
    name: "CreatePlan",
    required: true,
    is_template: false,
    schema: || {
        let mut properties = Map::new();
        for body in [&stack_create::BODY, &stack_update::BODY] {
            let schema = (body.schema)();
            properties.extend(schema.get("properties").and_then(Value::as_map).cloned().unwrap_or_default());
        }
        // The plan has a version of its own.
        properties.shift_remove("if_version");
        let actions = value!({ "type": "string", "enum": ["create", "update", "delete"] });
        properties.insert("action".to_owned(), actions);
        for name in ["stack", "description"] {
            properties.insert(name.to_owned(), schema::text());
        }
        properties.insert("expires_in".to_owned(), value!({ "type": "integer", "minimum": 0 }));
        properties.insert("refresh".to_owned(), value!({ "type": "boolean" }));
        properties.insert("replace".to_owned(), value!({ "type": "array", "items": (schema::text()) }));
        value!({ "type": "object", "required": ["action"], "properties": properties })
    },
};

static EXECUTED: Body = Body {
    name: "ExecutePlan",
    required: false,
    is_template: false,
    schema: || value!({ "type": "object", "properties": { "digest": (schema::text()) } }),
};

/// The rule of reading what a stack becomes.
const READ: &str = "stacks:template";

#[derive(Serialize)]
struct Whole {
    plan: Shown,
}

#[derive(Serialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    plan: Value,
    approvals: Value,
    /// The number of approvals without which it cannot be executed.
    approvals_needed: usize,
    /// `None`: a change set of the release before.
    document: Option<PlanDocument>,
}

#[derive(Serialize)]
struct Executed {
    stack: ExecutedStack,
    operation_id: String,
}

#[derive(Serialize)]
struct ExecutedStack {
    id: String,
    stack_name: String,
    links: [Link; 1],
}

async fn create(call: &Call) -> Result<Response, ApiError> {
    let body = call.body()?;
    let action = match body.get("action").and_then(Value::as_str) {
        Some("create") => Action::Create,
        Some("update") => Action::Update,
        Some("delete") => Action::Delete,
        _ => return Err(ApiError::bad_request("The action of a plan is create, update or delete.")),
    };
    call.allow(rule_of(action))?;
    let description = body.get("description").filter(|given| !given.is_null()).map(text::str).unwrap_or_default();
    let lifetime = match body.get("expires_in").filter(|given| !given.is_null()) {
        Some(given) => Some(Duration::from_secs(query::integer("expires_in", given)?.unsigned_abs())),
        None => None,
    };
    let content = call.instantiation().await?;
    let request = match action {
        Action::Create => PlannedRequest::Create(content.create()?),
        Action::Update => {
            let given = |key: &str| body.get(key).is_some_and(Value::is_truthy);
            let update = content.update(given("existing") || given("revision"))?;
            let replaced = paths(body, "replace")?;
            PlannedRequest::Update(Box::new(stack_of(call, body).await?), update, replaced)
        }
        _ => PlannedRequest::Delete(Box::new(stack_of(call, body).await?)),
    };
    let refresh = body.get("refresh").is_none_or(Value::is_truthy);
    let saved = call.service().save_plan(&call.caller, request, description, lifetime, refresh).await;
    let saved = saved.map_err(|error| content.placed(error))?;
    whole(call, StatusCode::CREATED, &saved).await
}

/// The paths of resources that a body has under a key.
pub(super) fn paths(body: &Map, key: &str) -> Result<BTreeSet<String>, ApiError> {
    let Some(given) = body.get(key).filter(|given| !given.is_null()) else { return Ok(BTreeSet::new()) };
    query::texts(given).ok_or_else(|| ApiError::bad_request(format!("'{key}' is not a list of paths of resources.")))
}

/// The live stack of the caller's project that a body names.
pub(super) async fn stack_of(call: &Call, body: &Map) -> Result<Stack, ApiError> {
    let given = body.get("stack").filter(|given| !given.is_null()).map(text::str);
    let name = given.ok_or_else(|| ApiError::bad_request("No stack specified"))?;
    let stack = call.service().identify(&call.caller, &name).await?;
    // A plan or a guard belongs to the project of its stack, and nobody else finds it.
    if stack.deleted.is_some() || stack.project != call.caller.project_id {
        return Err(Error::NoStack(name).into());
    }
    Ok(stack)
}

async fn list(call: &Call) -> Result<Response, ApiError> {
    call.allow(READ)?;
    let limit = Some(call.query.limit(LONGEST_LIST)?);
    let invalid = |_| ApiError::bad_request("Value of 'marker' is not an ID.");
    let named = call.query.get("stack");
    let stack = named.and_then(|name| name.parse::<StackId>().ok());
    let query = PlanQuery {
        project: call.caller.project_id.clone(),
        stack,
        stack_name: named.filter(|_| stack.is_none()).map(str::to_owned),
        marker: call.query.get("marker").map(|id| id.parse().map_err(invalid)).transpose()?,
        limit,
        without_bodies: false,
    };
    let plans = call.service().plans(&query).await?;
    Ok(reply::json(&value!({ "plans": (plans.iter().map(view).collect::<Value>()) })))
}

async fn show(call: &Call) -> Result<Response, ApiError> {
    call.allow(READ)?;
    whole(call, StatusCode::OK, &plan(call).await?).await
}

async fn delete(call: &Call) -> Result<Response, ApiError> {
    call.service().delete_plan(&plan(call).await?).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

async fn execute(call: &Call) -> Result<Response, ApiError> {
    let saved = plan(call).await?;
    call.allow(rule_of(saved.plan.action))?;
    let digest = call.body.as_ref().and_then(|body| body.get("digest")).filter(|given| !given.is_null()).map(text::str);
    let stack = call.service().execute_plan(&call.caller, saved, digest.as_deref(), None).await?;
    let links = [call.links.to_stack(&stack, "self")];
    let operation_id = stack.operation().to_string();
    let stack = ExecutedStack { id: stack.id.to_string(), stack_name: stack.name, links };
    Ok(reply::json_with(StatusCode::ACCEPTED, &Executed { stack, operation_id }))
}

async fn approve(call: &Call) -> Result<Response, ApiError> {
    let saved = plan(call).await?;
    call.allow(rule_of(saved.plan.action))?;
    call.service().approve_plan(&call.caller, &saved).await?;
    whole(call, StatusCode::OK, &saved).await
}

async fn renew(call: &Call) -> Result<Response, ApiError> {
    let saved = plan(call).await?;
    call.allow(rule_of(saved.plan.action))?;
    let renewed = call.service().renew_plan(&call.caller, &saved).await?;
    whole(call, StatusCode::CREATED, &renewed).await
}

async fn reject(call: &Call) -> Result<Response, ApiError> {
    call.service().reject_plan(&plan(call).await?).await?;
    Ok(reply::json(&value!({ "plan": (view(&plan(call).await?)) })))
}

/// The plan of the path.
async fn plan(call: &Call) -> Result<SavedPlan, ApiError> {
    Ok(call.service().plan(&call.caller, call.params.get("plan_id")).await?)
}

/// The rule of Heat for a change, which a plan of it needs too.
fn rule_of(action: Action) -> &'static str {
    match action {
        Action::Delete => "stacks:delete",
        Action::Update => "stacks:update",
        // An adopt is a create.
        _ => "stacks:create",
    }
}

async fn whole(call: &Call, status: StatusCode, saved: &SavedPlan) -> Result<Response, ApiError> {
    Ok(reply::json_with(status, &Whole { plan: shown(call, saved).await? }))
}

/// A plan with its document.
pub(super) async fn shown(call: &Call, saved: &SavedPlan) -> Result<Shown, ApiError> {
    let document = call.service().plan_document(saved).await?;
    let approvals = call.service().approvals(saved).await?;
    let approval = |one: &Approval| {
        let Author { user_id, username } = &one.author;
        value!({ "user_id": user_id, "user_name": username, "approved_at": (instant(one.time)) })
    };
    let approvals = approvals.iter().map(approval).collect();
    let approvals_needed = call.service().options.plan_approvals;
    Ok(Shown { plan: view(saved), approvals, approvals_needed, document })
}

/// A plan in a list.
fn view(saved: &SavedPlan) -> Value {
    let plan = &saved.plan;
    let totals = saved.header().map(|document| document.totals);
    value!({
        "id": (plan.id.to_string()),
        "stack_id": (plan.stack.to_string()),
        "stack_name": (&plan.stack_name),
        "action": (plan.action.as_str()),
        "status": (saved.status.as_str()),
        "name": (plan.name.clone()),
        "description": (saved.description()),
        "refresh": (saved.refreshes()),
        "digest": (Some(plan.digest.clone()).filter(|digest| !digest.is_empty())),
        "totals": (totals.map(|totals| value!({
            "data_loss": (totals.data_loss),
            "replacement": (totals.replacement),
            "interruption": (totals.interruption),
            "change": (totals.change),
            "none": (totals.none),
        }))),
        "created_at": (instant(plan.created)),
        "expires_at": (plan.expires.map(instant)),
        "user_id": (plan.author.as_ref().map(|author| author.user_id.clone())),
        "user_name": (plan.author.as_ref().map(|author| author.username.clone())),
        "operation_id": (saved.operation().map(|id| id.to_string())),
    })
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_plan_is_saved_shown_and_deleted() {
        let app = App::new().await;
        app.create("s", random_string()).await;
        app.settle("s").await;
        let save = async |body| app.json(Method::POST, "/v1/tenant1/plans", &body).await;
        let saved = save(json!({"action": "delete", "stack": "s", "refresh": false})).await;
        assert_eq!(saved.status.as_u16(), 201, "{}", saved.text);
        let plan = &saved.json()["plan"];
        assert_eq!((&plan["status"], &plan["refresh"]), (&"READY".into(), &false.into()), "{plan}");
        let path = format!("/v1/tenant1/plans/{}", plan["id"].as_str().unwrap());
        assert_eq!(app.get(&path).await.json()["plan"]["digest"], plan["digest"]);
        assert_eq!(app.send(Method::DELETE, &path, None, None).await.status.as_u16(), 204);
        assert_eq!(app.get(&path).await.status.as_u16(), 404);
        let refused = save(json!({"action": "explode", "stack": "s"})).await;
        assert!(refused.text.contains("The action of a plan is create, update or delete."), "{}", refused.text);
    }
}
