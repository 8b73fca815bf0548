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
    use jiff::Timestamp;
    use kiln_resource::{Action, Resource, ResourceId, State, Status};
    use kiln_store::Batch;
    use serde_json::json;

    use crate::support::{App, random_string, stack_of};

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

    /// Servers and alarms keep URLs with the name that their resource had.
    #[tokio::test]
    async fn a_signal_reaches_a_resource_under_its_former_name() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        let stack = stack_of(&path);
        let kind = "OS::Heat::WaitConditionHandle";
        let mut row = Resource::new(stack, ResourceId(uuid::Uuid::from_u128(1)), "former", kind, Timestamp::UNIX_EPOCH);
        row.rename("present");
        (row.state, row.physical_id) = (State::new(Action::Create, Status::Complete), Some("p".to_owned()));
        app.commit(stack, Batch { save: vec![row].into(), ..Batch::default() }).await;
        for (name, status) in [("present", 200), ("former", 200), ("none", 404)] {
            let answer = app.json(Method::POST, &format!("{path}/resources/{name}/signal"), &json!({"id": "1"})).await;
            assert_eq!(answer.status.as_u16(), status, "{name}: {}", answer.text);
        }
    }
}
