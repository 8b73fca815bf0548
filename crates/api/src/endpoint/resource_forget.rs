//! `POST …/resources/{name}/forget`: forgets a resource that cannot be deleted.

use axum::response::Response;
use http::Method;
use kiln_identity::{DefaultCheck, DefaultRule};
use kiln_service::Forget;
use kiln_value::{Map, Value, text, value};

use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::page;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ForgetResource",
    method: Method::POST,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}/forget",
    rule: Rule::Kiln(&[DefaultRule { name: "resource:forget", check: DefaultCheck::MEMBER }]),
    tag: "resources",
    summary: "Forget a resource that cannot be deleted; its object becomes an orphan",
    query: &[],
    body: Some(&BODY),
    answer: Answer::Json(202),
    run: |call| Box::pin(run(call)),
};

/// Why. There may be no reason.
static BODY: Body = Body {
    name: "Forget",
    required: false,
    is_template: false,
    schema: || value!({ "type": "object", "properties": { "reason": { "type": "string" } } }),
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

#[cfg(test)]
mod tests {
    use http::{Method, StatusCode};
    use kiln_resource::Parting;
    use kiln_resource::{Action, ResourceId, StackId, State, Status};
    use kiln_service::Limits;
    use kiln_store::{Batch, MessageBody, Resource};
    use serde_json::{Value, json};

    use crate::support::{App, random_string, stack_of, user};

    fn row(path: &str, name: &str, state: State, child: Option<StackId>) -> Resource {
        let now = "2026-11-20T06:52:46Z".parse().expect("a time");
        let id = ResourceId(uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_DNS, name.as_bytes()));
        Resource { state, child, ..Resource::new(stack_of(path), id, name, "OS::Heat::RandomString", now) }
    }

    #[tokio::test]
    async fn only_a_delete_can_be_given_up() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        let failed = State::new(Action::Delete, Status::Failed);
        let save = vec![
            row(&path, "made", State::new(Action::Create, Status::Complete), None),
            row(&path, "nested", failed, Some(stack_of(&path))),
            row(&path, "stuck", failed, None),
        ];
        app.commit(stack_of(&path), Batch { save: save.into(), ..Batch::default() }).await;
        let forget = async |name: &str, body: Value| {
            let answer = app.json(Method::POST, &format!("{path}/resources/{name}/forget"), &body).await;
            let message =
                if answer.status.is_success() { String::new() } else { answer.json()["error"]["message"].to_string() };
            (answer.status.as_u16(), message)
        };
        let (status, text) = forget("none", json!({})).await;
        assert_eq!((status, text.as_str()), (404, "\"The Resource (none) could not be found in Stack s.\""));
        let (status, text) = forget("made", json!({})).await;
        assert!(status == 400 && text.contains("CREATE_COMPLETE: delete it first"), "{status} {text}");
        let (status, text) = forget("nested", json!({})).await;
        assert!(status == 400 && text.contains("forget the resource in it that cannot be deleted"), "{status} {text}");
        let (status, text) = forget("stuck", json!({"why": 1})).await;
        assert!(status == 400, "{status} {text}");
        let now = "2027-11-20T06:52:46Z".parse().expect("a time");
        assert_eq!(app.store.inbox(stack_of(&path), now).await.expect("the store"), []);

        assert_eq!(forget("stuck", json!({"reason": "host lost"})).await.0, 202);
        let sent = app.store.inbox(stack_of(&path), now).await.expect("the store");
        let parting = Parting {
            user_id: "alice-id".to_owned(),
            username: "alice".to_owned(),
            reason: "host lost".to_owned(),
            path: "stuck".to_owned(),
            region: None,
        };
        assert_eq!((sent.len(), sent[0].resource.as_deref()), (1, Some("stuck")));
        assert_eq!(sent[0].body, MessageBody::Forget(parting));

        let reader = App::on(app.store.clone(), user(&["heat_stack_user"]), Limits::default());
        let refused = reader.json(Method::POST, &format!("{path}/resources/stuck/forget"), &json!({})).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
    }
}
