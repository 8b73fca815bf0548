//! `POST …/resources/{name}/forget`: forgets a resource that cannot be deleted.

use axum::response::Response;
use http::Method;
use kiln_service::Forget;
use kiln_value::{Map, Value, text};

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::page;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ForgetResource",
    method: Method::POST,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}/forget",
    rule: Rule::Of("resource:forget"),
    tag: "resources",
    summary: "Forget a resource that cannot be deleted; its object becomes an orphan",
    query: &[],
    body: Some("Forget"),
    answer: Answer::Json(202),
    run: |call| Box::pin(run(call)),
};

const KEY: &str = "reason";

async fn run(call: &Call) -> Result<Response, ApiError> {
    let empty = Map::new();
    let body = if call.body.is_some() { call.body()? } else { &empty };
    let unknown: Vec<String> = body.keys().filter(|key| *key != KEY).map(|key| text::repr(&Value::from(key))).collect();
    if !unknown.is_empty() {
        let keys = unknown.join(", ");
        return Err(ApiError::bad_request(format!("Invalid keys in resource forget {{{keys}}}: only {KEY} is known")));
    }
    let forget = Forget {
        resource: call.params.get("resource_name").to_owned(),
        reason: body.get(KEY).filter(|reason| !reason.is_null()).map(text::str),
    };
    call.service().forget(&call.caller, call.stack().await?, &forget).await?;
    Ok(page::accepted(&call.headers))
}
