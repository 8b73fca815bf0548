//! Operations and revisions: who may read them, and why one failed.

use http::StatusCode;
use kiln_identity::Caller;
use kiln_resource::{OperationId, State, Status};
use kiln_store::{Batch, Event, EventId, Settle};
use kiln_value::Value;
use serde_json::json;
use uuid::Uuid;

use crate::support::{App, random_string, user};

/// The paths of the operations and revisions of a stack with one request.
async fn paths(app: &App, path: &str) -> [String; 4] {
    let operations = format!("{path}/operations");
    let listed = app.get(&operations).await.json();
    let id = listed["operations"][0]["id"].as_str().unwrap_or_default();
    let one = format!("{operations}/{id}");
    [operations, one, format!("{path}/revisions"), format!("{path}/revisions/1")]
}

#[tokio::test]
async fn operations_and_revisions_of_other_projects_are_not_found() {
    let app = App::new().await;
    let path = app.create("s", random_string()).await;
    let paths = paths(&app, &path).await;
    for path in &paths {
        assert_eq!(app.get(path).await.status, StatusCode::OK, "{path}");
    }
    let caller = Caller { project_id: "tenant2".into(), ..user(&["member", "reader"]) };
    let other = app.clone().used_by(caller);
    let body = json!({ "stack_name": "mine", "template": random_string() });
    let mine = other.json(http::Method::POST, "/v1/tenant2/stacks", &body).await;
    assert_eq!(mine.status, StatusCode::CREATED, "{}", mine.text);
    let mine = mine.header("location").trim_start_matches("http://localhost").to_owned();
    for theirs in &paths {
        let through_mine = theirs.replace(&path, &mine);
        assert_eq!(other.get(theirs).await.status, StatusCode::FORBIDDEN, "{theirs}");
        let theirs = theirs.replace("tenant1", "tenant2");
        assert_eq!(other.get(&theirs).await.status, StatusCode::NOT_FOUND, "{theirs}");
        // The stack is the caller's, the operation is not.
        if through_mine.contains("/operations/") {
            assert_eq!(other.get(&through_mine).await.status, StatusCode::NOT_FOUND, "{through_mine}");
        }
    }
}

/// To read one needs what the parts of the stack need that are in it.
#[tokio::test]
async fn each_rule_alone_refuses_an_operation_or_a_revision() {
    let app = App::new().await;
    let path = app.create("s", random_string()).await;
    let paths = paths(&app, &path).await;
    let seen = async |rule: &str| {
        let app = app.clone().with_rules(&[(rule, "!")]);
        let mut refused = Vec::new();
        for path in &paths {
            let status = app.get(path).await.status;
            assert!([StatusCode::OK, StatusCode::FORBIDDEN].contains(&status), "{rule} {path}: {status}");
            refused.push(status == StatusCode::FORBIDDEN);
        }
        refused
    };
    assert_eq!(seen("stacks:template").await, [true, true, true, true]);
    assert_eq!(seen("stacks:environment").await, [false, false, false, true]);
    assert_eq!(seen("stacks:files").await, [false, false, false, true]);
    assert_eq!(seen("stacks:delete").await, [false, false, false, false]);
}

/// Once, the failures of later operations hid the cause of an earlier one.
#[tokio::test]
async fn the_cause_of_a_failure_is_found_after_many_others() {
    let app = App::new().await;
    let path = app.create("s", random_string()).await;
    let stack = app.store.stack_by_name("tenant1", "s").await.unwrap().unwrap();
    let failed = |number: u128, resource_type: &str, operation: OperationId| Event {
        id: EventId(Uuid::from_u128(number)),
        stack: stack.id,
        root: stack.root,
        resource_name: "one".to_owned(),
        resource_type: resource_type.to_owned(),
        physical_id: None,
        action: "CREATE".to_owned(),
        status: Status::Failed,
        reason: "Error: resources.one: no room".to_owned(),
        properties: Value::Null,
        operation: Some(operation),
        time: stack.created,
    };
    let settle = Settle {
        generation: 1,
        state: State::new(kiln_resource::Action::Create, Status::Failed),
        reason: "Resource CREATE failed: Error: resources.one: no room".to_owned(),
        deleted: false,
        reached: false,
        now: stack.created,
    };
    let later = OperationId(Uuid::from_u128(7));
    let mut events = vec![failed(1, "OS::Heat::RandomString", stack.operation())];
    events.extend((2..1_100).map(|number| failed(number, "OS::Nova::Server", later)));
    app.commit(stack.id, Batch { events, settle: Some(settle), ..Batch::default() }).await;
    let [_, operation, ..] = paths(&app, &path).await;
    let shown = app.get(&operation).await.json();
    assert_eq!(shown["operation"]["root_cause"]["resource_type"], "OS::Heat::RandomString", "{shown}");
}
