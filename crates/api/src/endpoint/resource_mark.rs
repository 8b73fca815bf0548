//! `PATCH …/resources/{name}`: marks a resource as unhealthy.

use axum::response::Response;
use http::Method;
use kiln_service::MarkUnhealthy;
use kiln_value::{Value, text, value};

use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::{query, reply};

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "MarkUnhealthy",
    method: Method::PATCH,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}",
    rule: Rule::Of("resource:mark_unhealthy"),
    tag: "resources",
    summary: "Mark a resource as healthy or not",
    query: &[],
    body: Some(&BODY),
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

static BODY: Body = Body {
    name: "Mark",
    required: true,
    is_template: false,
    schema: || {
        value!({
            "type": "object",
            "required": ["mark_unhealthy"],
            "properties": {
                "mark_unhealthy": { "type": "boolean" },
                "resource_status_reason": { "type": "string" },
            },
        })
    },
};

const KEYS: [&str; 2] = ["mark_unhealthy", "resource_status_reason"];

async fn run(call: &Call) -> Result<Response, ApiError> {
    let body = call.body()?;
    let unknown: Vec<String> =
        body.keys().filter(|key| !KEYS.contains(&key.as_str())).map(|key| text::repr(&Value::from(key))).collect();
    if !unknown.is_empty() {
        let keys = unknown.join(", ");
        return Err(ApiError::bad_request(format!("Invalid keys in resource mark unhealthy {{{keys}}}")));
    }
    let mark = body
        .get("mark_unhealthy")
        .ok_or_else(|| ApiError::bad_request("Missing mandatory (mark_unhealthy) key from mark unhealthy request"))?;
    let mark = MarkUnhealthy {
        resource: call.params.get("resource_name").to_owned(),
        unhealthy: query::boolean("mark_unhealthy", mark)?,
        reason: body.get("resource_status_reason").filter(|reason| !reason.is_null()).map(text::str),
    };
    call.service().mark_unhealthy(&call.caller, call.stack().await?, &mark).await?;
    Ok(reply::json(&Value::Null))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_mark_says_whether_the_resource_is_healthy() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        for (body, refusal) in [
            (json!({}), "Missing mandatory (mark_unhealthy) key from mark unhealthy request"),
            (json!({"mark_unhealthy": true, "why": "x"}), "Invalid keys in resource mark unhealthy {'why'}"),
            (json!({"mark_unhealthy": "perhaps"}), "mark_unhealthy"),
        ] {
            let refused = app.json(Method::PATCH, &format!("{path}/resources/one"), &body).await;
            assert!(refused.status.as_u16() == 400 && refused.text.contains(refusal), "{refused:?}");
        }
        let missing =
            app.json(Method::PATCH, &format!("{path}/resources/none"), &json!({"mark_unhealthy": true})).await;
        assert_eq!(missing.status.as_u16(), 404);
    }
}
