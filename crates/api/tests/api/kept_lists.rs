//! Lists that are sent again as they were sent last.

use std::sync::Arc;

use http::{Method, StatusCode};
use kiln_resource::{Action, Resource, ResourceId, State, Status};
use kiln_service::Limits;
use kiln_store::{Batch, Event, EventId, StackId};
use serde_json::{Value, json};

use crate::support::{App, user};

fn template(word: &str) -> Value {
    let value = json!({"type": "OS::Heat::Value", "properties": {"value": word}});
    json!({"heat_template_version": "2018-08-31", "resources": {"one": value, "two": value}})
}

/// A change of a resource with its event.
fn change(stack: StackId, number: u128, name: &str, status: Status) -> Batch {
    let now = "2026-11-20T06:52:46Z".parse().expect("a time");
    let state = State::new(Action::Create, status);
    let id = ResourceId(uuid::Uuid::from_u128(name.len() as u128));
    let row = Resource { state, ..Resource::new(stack, id, name, "OS::Heat::Value", now) };
    let event = Event {
        operation: None,
        id: EventId(uuid::Uuid::from_u128(number)),
        stack,
        root: stack,
        resource_name: name.to_owned(),
        resource_type: "OS::Heat::Value".to_owned(),
        physical_id: None,
        action: "CREATE".to_owned(),
        status,
        reason: "state changed".to_owned(),
        properties: kiln_value::Value::Null,
        time: now,
    };
    Batch { save: vec![row].into(), events: vec![event], ..Batch::default() }
}

const LISTS: [&str; 6] =
    ["resources", "resources?name=one", "events", "events?limit=1", "events?sort_dir=asc", "resources/one/events"];

/// Reads all lists twice: they must be what the API says that has just been started on the same store.
async fn read(app: &App, path: &str) -> Vec<String> {
    let fresh = App::on(Arc::clone(&app.store), user(&["member", "reader"]), Limits::default());
    let mut texts = Vec::new();
    for list in LISTS {
        let path = format!("{path}/{list}");
        let wanted = fresh.get(&path).await;
        for _ in 0..2 {
            let answer = app.get(&path).await;
            assert_eq!((answer.status, &answer.text), (wanted.status, &wanted.text), "{list}");
            assert_eq!(answer.header("content-type"), wanted.header("content-type"));
        }
        texts.push(wanted.text);
    }
    texts
}

#[tokio::test]
async fn a_list_is_kept_until_the_stack_changes() {
    let app = App::new().await;
    let path = app.create("s", template("first")).await;
    let id: StackId = path.rsplit('/').next().expect("an ID").parse().expect("an ID");
    app.commit(id, change(id, 1, "one", Status::InProgress)).await;
    let mut before = read(&app, &path).await;
    assert_eq!(app.kept_lists(), 0, "a stack that is being changed");
    app.settle("s").await;
    for (number, status) in [(2, Status::Complete), (3, Status::Failed), (4, Status::Complete)] {
        app.commit(id, change(id, number, "one", status)).await;
        let now = read(&app, &path).await;
        assert_eq!(app.kept_lists(), LISTS.len());
        assert!(now.iter().zip(&before).all(|(now, before)| now != before), "{now:?}");
        before = now;
    }
    let body = json!({"template": template("second")});
    let updated = app.json(Method::PUT, &path, &body).await;
    assert_eq!(updated.status, StatusCode::ACCEPTED, "{}", updated.text);
    read(&app, &path).await;
    app.settle("s").await;
    read(&app, &path).await;

    // The links have the address that the client used.
    let elsewhere = app.open(&format!("{path}/resources"), &[("host", "elsewhere")]).await;
    let text = axum::body::to_bytes(elsewhere.into_body(), usize::MAX).await.expect("a body");
    let text = String::from_utf8(text.to_vec()).expect("text");
    assert!(text.contains("http://elsewhere/") && !text.contains("localhost"), "{text}");
}

#[tokio::test]
async fn a_kept_list_is_not_for_everybody() {
    let app = App::new().await;
    let path = app.create("s", template("first")).await;
    let id: StackId = path.rsplit('/').next().expect("an ID").parse().expect("an ID");
    app.commit(id, change(id, 1, "one", Status::Complete)).await;
    app.settle("s").await;
    read(&app, &path).await;
    assert_eq!(app.kept_lists(), LISTS.len());
    let stranger = kiln_identity::Caller { project_id: "other".into(), ..user(&["member"]) };
    let app = app.used_by(stranger);
    assert_eq!(app.kept_lists(), LISTS.len(), "the same memory");
    for list in LISTS {
        assert_eq!(app.get(&format!("{path}/{list}")).await.status, StatusCode::FORBIDDEN, "{list}");
    }
}
