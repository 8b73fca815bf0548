//! Adopt, abandon and export: what is stored, and what is refused.

use http::{Method, StatusCode};
use kiln_resource::{Action, SnapshotId, State, Status};
use kiln_store::{Batch, Details, Settle, Snapshot, StackRequest};
use serde_json::{Value, json};

use crate::support::{App, random_string};

fn template() -> Value {
    json!({
        "heat_template_version": "2018-08-31",
        "parameters": {"word": {"type": "string"}},
        "resources": {"one": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "word"}}}},
    })
}

fn data() -> Value {
    json!({
        "template": template(),
        "environment": {"parameters": {"word": "adopted"}},
        "resources": {"one": {"resource_id": "old"}},
    })
}

fn adopt(name: &str, data: &Value, parameters: &Value) -> Value {
    json!({"stack_name": name, "adopt_stack_data": data.to_string(), "parameters": parameters})
}

#[tokio::test]
async fn both_are_refused_unless_the_operator_allows_them() {
    let app = App::new().await;
    let path = app.create("there", json!({"heat_template_version": "2018-08-31"})).await;
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &adopt("s", &data(), &json!({}))).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(answer.json()["error"]["message"], "Stack Adopt is not supported.");
    for (method, path) in [(Method::DELETE, format!("{path}/abandon")), (Method::GET, format!("{path}/export"))] {
        let answer = app.send(method, &path, None, None).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
        assert_eq!(answer.json()["error"]["message"], "Stack Abandon is not supported.");
    }
    assert_eq!(app.stacks().await, 1);
}

/// What it adopts exists: no check would be of use, and none is accepted and ignored.
#[tokio::test]
async fn a_preflight_is_refused() {
    let app = App::new().await.with_adoption();
    let mut body = adopt("a", &data(), &json!({}));
    body["preflight"] = true.into();
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    let message = "The pre-flight of a request that adopts objects is not supported.";
    assert_eq!((answer.status, answer.json()["error"]["message"].clone()), (StatusCode::BAD_REQUEST, message.into()));
}

#[tokio::test]
async fn the_data_is_the_base_of_the_request() {
    let app = App::new().await.with_adoption();
    for (name, parameters, word) in [("a", json!({}), "adopted"), ("b", json!({"word": "given"}), "given")] {
        // A template beside the data is ignored.
        let mut body = adopt(name, &data(), &parameters);
        body["template"] = json!({"heat_template_version": "1999-01-01"});
        let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
        let stack = app.store.stack_by_name("tenant1", name).await.unwrap().unwrap();
        assert_eq!(stack.state, State::new(Action::Adopt, Status::InProgress));
        let stored = app.store.snapshot(stack.id, stack.details.snapshot.unwrap()).await.unwrap().unwrap();
        assert_eq!(serde_json::to_value(&stored.data).unwrap(), json!({"resources": {"one": {"resource_id": "old"}}}));
        let environment = app.store.content(&stack.desired.environment).await.unwrap();
        let environment: Value = serde_json::from_str(&environment).unwrap();
        assert_eq!(environment["parameters"]["word"], word);
    }
}

#[tokio::test]
async fn files_and_types_of_the_data_are_used_where_the_request_has_none() {
    let app = App::new().await.with_adoption();
    let data = json!({
        "template": {"heat_template_version": "2018-08-31", "resources": {"n": {"type": "My::Type"}}},
        "environment": {"resource_registry": {"My::Type": "inner.yaml"}},
        "files": {"inner.yaml": json!({"heat_template_version": "2018-08-31"}).to_string()},
        "resources": {"n": {"resources": {}}},
    });
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &adopt("s", &data, &json!({}))).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
}

#[tokio::test]
async fn bad_data_is_refused() {
    let app = App::new().await.with_adoption();
    let unknown = json!({
        "template": {"heat_template_version": "2018-08-31", "resources": {"n": {"type": "My::Type"}}},
        "resources": {"n": {"resource_id": "i"}},
    });
    for (data, text) in [
        (json!({"resources": {}}), "Invalid adopt data: 'template'"),
        (json!([1]), "Unexpected adopt data \"[1]\". Adopt data must be a dict."),
        (unknown, "The Resource Type (My::Type) could not be found."),
    ] {
        let answer = app.json(Method::POST, "/v1/tenant1/stacks", &adopt("s", &data, &json!({}))).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
        let message = answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(text), "{message}");
    }
    assert_eq!(app.stacks().await, 0);
}

#[tokio::test]
async fn abandon_returns_the_data_and_asks_the_engine_to_keep_the_objects() {
    let app = App::new().await.with_adoption();
    let path = app.create("s", json!({"heat_template_version": "2018-08-31"})).await;
    let exported = app.get(&format!("{path}/export")).await;
    assert_eq!(exported.status, StatusCode::OK, "{}", exported.text);
    let exported = exported.json();
    let mut keys: Vec<&str> = exported.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    let wanted = [
        "action",
        "environment",
        "files",
        "id",
        "name",
        "project_id",
        "resources",
        "stack_user_project_id",
        "status",
        "tags",
        "template",
    ];
    assert_eq!(keys, wanted);
    // The create is still in progress: its data would be incomplete.
    let abandon = format!("{path}/abandon");
    let answer = app.send(Method::DELETE, &abandon, None, None).await;
    assert_eq!(answer.status, StatusCode::CONFLICT, "{}", answer.text);
    app.settle("s").await;
    let answer = app.send(Method::DELETE, &abandon, None, None).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert_eq!(answer.json()["name"], "s");
    let stack = app.store.stack_by_name("tenant1", "s").await.unwrap().unwrap();
    assert!(stack.details.keep_objects && stack.state == State::new(Action::Delete, Status::InProgress));
    // Another stack may have adopted the objects: a later delete keeps them, too.
    let answer = app.send(Method::DELETE, &path, None, None).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.text);
    let stack = app.store.stack_by_name("tenant1", "s").await.unwrap().unwrap();
    assert!(stack.details.keep_objects && stack.generation == 3);
    // If that fails, no other action makes the stack forget it.
    let (state, now) = (State::new(Action::Delete, Status::Failed), jiff::Timestamp::UNIX_EPOCH);
    let settle = Settle { generation: 3, state, reason: String::new(), deleted: false, reached: false, now };
    app.commit(stack.id, Batch { settle: Some(settle), ..Batch::default() }).await;
    for action in ["check", "suspend"] {
        let answer = app.json(Method::POST, &format!("{path}/actions"), &json!({ action: null })).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
        assert!(answer.text.contains("a stack that was abandoned"), "{}", answer.text);
    }
    let answer = app.send(Method::DELETE, &path, None, None).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.text);
    let stack = app.store.stack_by_name("tenant1", "s").await.unwrap().unwrap();
    assert!(stack.details.keep_objects && stack.generation == 4);
}

/// As after a failure: the rollback must not delete objects that the update has only adopted.
#[tokio::test]
async fn a_cancelled_update_keeps_the_objects_that_it_adopts() {
    let app = App::new().await;
    for (name, adopts) in [("importing", true), ("other", false)] {
        let path = app.create(name, random_string()).await;
        let stack = app.settle(name).await;
        let id = SnapshotId(uuid::Uuid::from_u128(u128::from(adopts)));
        let data = Snapshot {
            id,
            stack: stack.id,
            name: None,
            state: State::new(Action::Adopt, Status::InProgress),
            reason: String::new(),
            data: kiln_value::value!({ "one": { "resource_id": "old" } }),
            created: stack.created,
        };
        let request = StackRequest {
            details: Details { snapshot: adopts.then_some(id), ..Details::default() },
            snapshot: adopts.then_some(data),
            ..StackRequest::new(Action::Update, stack.created)
        };
        app.store.request(stack.id, request).await.unwrap();
        let cancelled = app.json(Method::POST, &format!("{path}/actions"), &json!({"cancel_update": null})).await;
        assert_eq!(cancelled.status, StatusCode::OK, "{}", cancelled.text);
        let stack = app.store.stack(stack.id).await.unwrap().unwrap();
        assert_eq!(stack.state, State::new(Action::Rollback, Status::InProgress));
        assert_eq!((stack.details.keep_objects, stack.details.only_adopted), (adopts, adopts), "{name}");
    }
}
