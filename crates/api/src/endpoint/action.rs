//! `POST …/actions`: suspend, resume, check, cancel.

use axum::response::Response;
use http::Method;
use kiln_resource::Action as StackState;
use kiln_service::StackAction;
use kiln_value::{Map, Value, value};

use super::plan::paths;
use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::openapi::schema;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "Act",
    method: Method::POST,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/actions",
    rule: Rule::Own,
    tag: "stacks",
    summary: "Suspend, resume, check, cancel or continue a stack",
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
        let mut actions: Map = names.iter().map(|name| ((*name).to_owned(), action.clone())).collect();
        let paths = value!({ "type": "array", "items": (schema::text()) });
        let continues =
            value!({ "type": ["object", "null"], "properties": { "skip": paths, "retry": { "type": "boolean" } } });
        actions.insert(CONTINUE.to_owned(), continues);
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
    if name == CONTINUE {
        return go_on(call, asked.get(name).unwrap_or(&Value::Null)).await;
    }
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

/// The action that Heat does not have.
const CONTINUE: &str = "continue";

/// Continues a failed operation.
async fn go_on(call: &Call, options: &Value) -> Result<Response, ApiError> {
    let none = Map::new();
    let options = match options {
        Value::Null => &none,
        Value::Map(options) => options,
        _ => return Err(ApiError::bad_request("'continue' is a map with 'skip', or null.")),
    };
    if let Some(unknown) = options.keys().find(|key| !["skip", "retry"].contains(&key.as_str())) {
        return Err(ApiError::bad_request(format!("'continue' has no '{unknown}'.")));
    }
    if options.get("retry").is_some_and(|retry| *retry != Value::Bool(true)) {
        return Err(ApiError::bad_request("'retry' is true: name what is not to be tried again with 'skip'."));
    }
    let skip = paths(options, "skip")?;
    let stack = call.stack().await?;
    call.allow(if stack.state.action == StackState::Delete { "stacks:delete" } else { "stacks:update" })?;
    call.service().continue_stack(&call.caller, &stack, &skip).await?;
    Ok(reply::json(&Value::Null))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use kiln_resource::{Action, Resource, ResourceId, State, Status};
    use kiln_store::{Batch, Settle};
    use serde_json::json;

    use crate::support::{App, random_string, stack_of};

    /// A resource whose delete has failed is forgotten when it is skipped, but not if another path is refused.
    #[tokio::test]
    async fn nothing_is_forgotten_if_the_request_is_refused() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        assert_eq!(app.send(Method::DELETE, &path, None, None).await.status.as_u16(), 204);
        let (stack, now) = (stack_of(&path), jiff::Timestamp::UNIX_EPOCH);
        let state = State::new(Action::Delete, Status::Failed);
        let id = ResourceId(uuid::Uuid::from_u128(1));
        let mut row = Resource::new(stack, id, "first", "OS::Heat::RandomString", now);
        (row.state, row.physical_id) = (state, Some("p".to_owned()));
        let settle = Settle { generation: 2, state, reason: String::new(), deleted: false, reached: false, now };
        app.commit(stack, Batch { save: vec![row].into(), settle: Some(settle), ..Batch::default() }).await;
        let go_on = async |skip| {
            let body = json!({"continue": {"skip": skip}});
            let answer = app.json(Method::POST, &format!("{path}/actions"), &body).await;
            let sent = app.store.backlog(stack, false).await.expect("read").messages;
            (answer.status.as_u16(), sent)
        };
        assert_eq!(go_on(json!(["first", "none"])).await, (404, 0));
        assert_eq!(go_on(json!(["first"])).await, (200, 1));
    }

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
        for (body, refusal) in [
            (json!({"continue": null}), "Continuing a stack in the state CREATE_COMPLETE is not supported"),
            (json!({"continue": []}), "'continue' is a map"),
            (json!({"continue": {"skip": "a"}}), "'skip' is not a list"),
            (json!({"continue": {"retry": false}}), "'retry' is true"),
            (json!({"continue": {"twice": 1}}), "'continue' has no 'twice'"),
        ] {
            let (status, text) = act(body).await;
            assert!(status == 400 && text.contains(refusal), "{status} {text}");
        }
        assert_eq!(act(json!({"suspend": null})).await, (200, "null".to_owned()));
        assert_eq!(app.get(&path).await.json()["stack"]["stack_status"], "SUSPEND_IN_PROGRESS");
    }
}
