//! `POST …/resources/{name}/signal`.

use axum::response::Response;
use http::Method;
use kiln_service::Signal;
use kiln_value::{Value, value};

use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "SignalResource",
    method: Method::POST,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}/signal",
    rule: Rule::Of("resource:signal"),
    tag: "resources",
    summary: "Send a signal to a resource",
    query: &[],
    body: Some(&BODY),
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

/// The data of the signal. There may be none.
static BODY: Body =
    Body { name: "Signal", required: false, is_template: false, schema: || value!({ "type": "object" }) };

async fn run(call: &Call) -> Result<Response, ApiError> {
    let resource = call.params.get("resource_name").to_owned();
    let signal = Signal { resource, details: call.body.clone().unwrap_or_default() };
    call.service().signal(call.stack().await?, &signal).await?;
    Ok(reply::json(&Value::Null))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_signal_needs_a_resource() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        let missing =
            app.json(Method::POST, &format!("{path}/resources/none/signal"), &json!({"status": "SUCCESS"})).await;
        assert_eq!(
            (missing.status.as_u16(), missing.json()["error"]["type"].clone()),
            (404, "ResourceNotFound".into())
        );
    }
}
