//! `…/operations`: what was requested of a stack, by whom, and how it ended. Heat has no such call.

use axum::response::Response;
use http::Method;
use jiff::Timestamp;
use kiln_plan_document::Estimate;
use kiln_service::{ListedOperation, Progress, RootCause};
use kiln_store::{OperationQuery, Operations};
use kiln_value::{Value, value};
use serde::Serialize;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::{Formats, LONGEST_LIST};
use crate::http::reply;
use crate::view::instant::instant;

pub(super) static LIST: Endpoint = Endpoint {
    name: "ListOperations",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/operations",
    rule: Rule::Of("stacks:template"),
    tag: "stacks",
    summary: "List the operations of a stack and its nested stacks, newest first",
    query: &[("limit", "integer"), ("marker", "text")],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(list(call)),
};

pub(super) static SHOW: Endpoint = Endpoint {
    name: "ShowOperation",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/operations/{operation_id}",
    rule: Rule::Of("stacks:template"),
    tag: "stacks",
    summary: "Show an operation of a stack, with the cause of its failure",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(show(call)),
};

#[derive(Serialize)]
struct Whole {
    operation: Shown,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    listed: Value,
    root_cause: Option<Value>,
    /// How long its plan was to take.
    estimate: Option<Box<Estimate>>,
}

async fn list(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack_or_deleted().await?;
    let operations = call.service().operations(&query(call, Operations::OfTree(stack.root))?).await?;
    Ok(reply::json(&value!({ "operations": (operations.iter().map(view).collect::<Value>()) })))
}

/// A page of operations.
pub(super) fn query(call: &Call, of: Operations) -> Result<OperationQuery, ApiError> {
    let limit = Some(call.query.limit(LONGEST_LIST)?);
    let invalid = |_| ApiError::bad_request("Value of 'marker' is not an ID.".to_owned());
    let marker = call.query.get("marker").map(|id| id.parse().map_err(invalid)).transpose()?;
    Ok(OperationQuery { of, marker, limit })
}

async fn show(call: &Call) -> Result<Response, ApiError> {
    let stack = call.stack_or_deleted().await?;
    let listed = call.service().operation(&stack, call.params.get("operation_id")).await?;
    let root_cause = call.service().root_cause(&listed.operation).await?.map(cause);
    let estimate = call.service().estimate_of(&listed.operation).await?;
    Ok(reply::json(&Whole { operation: Shown { listed: view(&listed), root_cause, estimate } }))
}

fn cause(cause: RootCause) -> Value {
    value!({
        "resource_path": (cause.path.join("/")),
        "resource_type": (cause.resource_type),
        "error": (cause.class.to_string()),
        "message": (cause.message),
    })
}

/// An operation in a list.
pub(super) fn view(listed: &ListedOperation) -> Value {
    let operation = &listed.operation;
    let author = operation.author.as_ref();
    let status = match listed.progress {
        Progress::InProgress => "IN_PROGRESS",
        Progress::Complete => "COMPLETE",
        Progress::Failed => "FAILED",
        Progress::Replaced => "REPLACED",
    };
    value!({
        "id": (operation.id.to_string()),
        "stack_id": (operation.stack.to_string()),
        "plan_id": (operation.plan.map(|plan| plan.to_string())),
        "action": (operation.action.as_str()),
        "status": status,
        "status_reason": (operation.end.as_ref().map(|end| end.reason.clone())),
        "revision": (operation.desired.as_ref().map(|_| operation.generation)),
        "user_id": (author.map(|author| author.user_id.clone())),
        "user_name": (author.map(|author| author.username.clone())),
        "request_id": (Some(operation.request.clone()).filter(|id| !id.is_empty())),
        "started_at": (instant(operation.begun)),
        "ended_at": (operation.end.as_ref().map(|end| instant(end.time))),
        "seconds": (operation.end.as_ref().map(|end| seconds_between(operation.begun, end.time))),
    })
}

/// With milliseconds.
fn seconds_between(begin: Timestamp, end: Timestamp) -> f64 {
    (end.duration_since(begin).as_secs_f64() * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use crate::support::{App, random_string};

    #[tokio::test]
    async fn an_operation_says_who_asked_for_what_and_how_it_ended() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        let first = async || app.get(&format!("{path}/operations")).await.json()["operations"][0].clone();
        let begun = first().await;
        assert_eq!(
            (&begun["action"], &begun["status"], &begun["ended_at"]),
            (&"CREATE".into(), &"IN_PROGRESS".into(), &().into())
        );
        assert_eq!((&begun["user_name"], &begun["revision"]), (&"alice".into(), &1.into()));
        app.settle("s").await;
        assert_eq!(first().await["status"], "COMPLETE");
        let shown = app.get(&format!("{path}/operations/{}", begun["id"].as_str().unwrap())).await.json();
        assert_eq!((&shown["operation"]["id"], &shown["operation"]["root_cause"]), (&begun["id"], &().into()));
        assert_eq!(app.get(&format!("{path}/operations/none")).await.status.as_u16(), 404);
        assert_eq!(app.get(&format!("{path}/operations?marker=x")).await.status.as_u16(), 400);
    }
}
