//! `POST …/actions`: suspend, resume, check, cancel.

use axum::response::Response;
use http::Method;
use kiln_service::StackAction;
use kiln_value::{Map, Value, value};

use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "Act",
    method: Method::POST,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/actions",
    rule: Rule::Own,
    tag: "stacks",
    summary: "Suspend, resume, check or cancel a stack",
    query: &[],
    body: Some(&BODY),
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

/// An action with its options, which are ignored.
static BODY: Body = Body {
    name: "Act",
    required: true,
    is_template: false,
    schema: || {
        let action = value!({ "type": ["object", "null", "string"] });
        let names = ["suspend", "resume", "check", "cancel_update", "cancel_without_rollback"];
        let actions: Map = names.iter().map(|name| ((*name).to_owned(), action.clone())).collect();
        value!({ "type": "object", "minProperties": 1, "maxProperties": 1, "properties": actions })
    },
};

async fn run(call: &Call) -> Result<Response, ApiError> {
    let none = Map::new();
    let asked = call.body.as_ref().and_then(Value::as_map).unwrap_or(&none);
    let name = match asked.keys().collect::<Vec<_>>().as_slice() {
        [] => return Err(ApiError::bad_request("No action specified")),
        [name] => name.as_str(),
        _ => return Err(ApiError::bad_request("Multiple actions specified")),
    };
    let action = match name {
        "suspend" => StackAction::Suspend,
        "resume" => StackAction::Resume,
        "check" => StackAction::Check,
        "cancel_update" => StackAction::CancelUpdate,
        "cancel_without_rollback" => StackAction::CancelWithoutRollback,
        _ => return Err(ApiError::bad_request(format!("Invalid action {name} specified"))),
    };
    call.allow(&format!("actions:{name}"))?;
    let stack = call.stack().await?;
    call.service().act(&call.caller, &stack, action).await?;
    Ok(reply::json(&Value::Null))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::{App, random_string};

    #[tokio::test]
    async fn a_stack_takes_one_known_action_at_a_time() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        let act = async |body| {
            let answer = app.json(Method::POST, &format!("{path}/actions"), &body).await;
            (answer.status.as_u16(), answer.text)
        };
        for (body, refusal) in [
            (json!({}), "No action specified"),
            (json!({"suspend": null, "resume": null}), "Multiple actions specified"),
            (json!({"explode": null}), "Invalid action explode specified"),
        ] {
            let (status, text) = act(body).await;
            assert!(status == 400 && text.contains(refusal), "{status} {text}");
        }
        assert_eq!(act(json!({"suspend": null})).await, (200, "null".to_owned()));
        assert_eq!(app.get(&path).await.json()["stack"]["stack_status"], "SUSPEND_IN_PROGRESS");
    }
}
