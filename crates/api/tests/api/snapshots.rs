//! Snapshots: what is stored, and what is refused.

use http::{Method, StatusCode};
use kiln_resource::{Action, SnapshotId, State, Status};
use kiln_service::Limits;
use kiln_store::{Batch, Snapshot, Stack};
use serde_json::{Value, json};

use crate::support::{App, user};

fn template(word: &str) -> Value {
    let value = json!({"type": "OS::Heat::Value", "properties": {"value": word}});
    json!({"heat_template_version": "2018-08-31", "resources": {"one": value}})
}

async fn ready(app: &App) -> (String, Stack) {
    let path = app.create("s", template("first")).await;
    let stack = app.settle("s").await;
    (path, stack)
}

/// Changes a snapshot, as an engine does.
async fn finish(app: &App, stack: &Stack, id: &str, status: Status, data: Option<Value>) {
    let id: SnapshotId = id.parse().expect("a snapshot");
    let snapshot = app.store.snapshot(stack.id, id).await.expect("a snapshot").expect("a snapshot");
    let data = data.map_or(kiln_value::Value::Null, |data| serde_json::from_value(data).expect("a snapshot"));
    let snapshot = Snapshot { state: State::new(Action::Snapshot, status), data, ..snapshot };
    app.commit(stack.id, Batch { snapshots: vec![snapshot].into(), ..Batch::default() }).await;
}

#[tokio::test]
async fn a_snapshot_is_a_request_with_a_record() {
    let app = App::new().await;
    let (path, stack) = ready(&app).await;
    let snapshots = format!("{path}/snapshots");
    let answer = app.json(Method::POST, &snapshots, &json!({"name": "nightly"})).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let record = answer.json();
    let mut keys: Vec<&str> = record.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["creation_time", "data", "id", "name", "status", "status_reason"]);
    assert_eq!((&record["name"], &record["status"]), (&json!("nightly"), &json!("IN_PROGRESS")));
    let id = record["id"].as_str().unwrap();
    let asked = app.store.stack(stack.id).await.unwrap().unwrap();
    assert_eq!(asked.state, State::new(Action::Snapshot, Status::InProgress));
    assert_eq!(asked.details.snapshot.map(|id| id.to_string()).as_deref(), Some(id));

    let busy = app.send(Method::POST, &snapshots, None, None).await;
    assert_eq!(busy.status, StatusCode::CONFLICT, "{}", busy.text);
    let one = format!("{snapshots}/{id}");
    let refused = app.send(Method::DELETE, &one, None, None).await;
    assert_eq!(refused.json()["error"]["message"], "Deleting in-progress snapshot is not supported.");
    let refused = app.send(Method::POST, &format!("{one}/restore"), None, None).await;
    assert_eq!(refused.json()["error"]["message"], "Restoring incomplete snapshot is not supported.");
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);

    app.settle("s").await;
    assert_eq!(app.get(&snapshots).await.json()["snapshots"].as_array().unwrap().len(), 1);
    finish(&app, &stack, id, Status::Failed, None).await;
    assert_eq!(app.get(&one).await.json()["snapshot"]["status"], "FAILED");
    let deleted = app.send(Method::DELETE, &one, None, None).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let now = "2027-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(app.store.inbox(stack.id, now).await.unwrap().len(), 1);

    let missing = app.get(&format!("{snapshots}/nope")).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    assert_eq!(missing.json()["error"]["message"], "The Snapshot (nope) for Stack (s) could not be found.");
}

#[tokio::test]
async fn restoring_is_an_update_to_the_template_of_the_snapshot() {
    let app = App::new().await;
    let (path, stack) = ready(&app).await;
    let snapshots = format!("{path}/snapshots");
    let id = app.send(Method::POST, &snapshots, None, None).await.json()["id"].as_str().unwrap().to_owned();
    let stack = {
        app.settle("s").await;
        app.store.stack(stack.id).await.unwrap().unwrap()
    };
    let data = json!({
        "template": template("saved"),
        "environment": {"parameters": {}},
        "files": {},
        "resources": {"one": {"resource_id": "i", "resource_data": {"k": "v"}}},
    });
    finish(&app, &stack, &id, Status::Complete, Some(data)).await;
    let answer = app.send(Method::POST, &format!("{snapshots}/{id}/restore"), None, None).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    let asked = app.store.stack(stack.id).await.unwrap().unwrap();
    assert_eq!(asked.state, State::new(Action::Restore, Status::InProgress));
    assert_eq!(app.get(&format!("{path}/template")).await.json(), template("saved"));
    // A failed restore goes back to the state before it.
    assert_eq!(asked.previous, Some(stack.desired));
}

#[tokio::test]
async fn a_stack_has_a_limited_number_of_snapshots() {
    let app = App::new().await;
    let limits = Limits { snapshots_per_stack: Some(1), ..Limits::default() };
    let app = App::on(app.store, user(&["member", "reader"]), limits);
    let (path, _) = ready(&app).await;
    let snapshots = format!("{path}/snapshots");
    assert_eq!(app.send(Method::POST, &snapshots, None, None).await.status, StatusCode::OK);
    app.settle("s").await;
    let refused = app.send(Method::POST, &snapshots, None, None).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let text =
        "Request limit exceeded: You have reached the maximum snapshots per stack, 1. Please delete some snapshots.";
    assert_eq!(refused.json()["error"]["message"], text);
}
