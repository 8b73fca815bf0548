//! `POST …/snapshots`: the body may have a name.

use axum::response::Response;
use http::Method;
use kiln_value::{text, value};

use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::snapshot::snapshot_view;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "CreateSnapshot",
    method: Method::POST,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/snapshots",
    rule: Rule::Of("stacks:snapshot"),
    tag: "snapshots",
    summary: "Create a snapshot",
    query: &[],
    body: Some(&BODY),
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

static BODY: Body = Body {
    name: "CreateSnapshot",
    required: true,
    is_template: false,
    schema: || value!({ "type": "object", "properties": { "name": { "type": "string" } } }),
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let name = call.body.as_ref().and_then(|body| body.get("name")).filter(|name| !name.is_null()).map(text::str);
    let stack = call.stack().await?;
    let snapshot = call.service().create_snapshot(&stack, name, &call.caller).await?;
    Ok(reply::json(&snapshot_view(&snapshot)))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_snapshot_is_in_progress_and_has_a_name_if_one_is_given() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        let made = app.json(Method::POST, &format!("{path}/snapshots"), &json!({"name": "before"})).await.json();
        assert_eq!((&made["name"], &made["status"]), (&"before".into(), &"IN_PROGRESS".into()), "{made}");
        let busy = app.json(Method::POST, &format!("{path}/snapshots"), &json!({})).await;
        assert_eq!((busy.status.as_u16(), busy.json()["error"]["type"].clone()), (409, "ActionInProgress".into()));
    }
}
