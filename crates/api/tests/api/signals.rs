//! Signals are sent to the engine, or refused at once.

use std::sync::Arc;

use http::{Method, StatusCode};
use kiln_identity::Caller;
use kiln_resource::{Action, State, Status};
use kiln_service::Limits;
use kiln_store::{Batch, EngineId, Message, MessageKind};
use kiln_value::text;
use serde_json::{Value, json};

use crate::support::{Answer, App, random_string, stack_of, user};

async fn signal(app: &App, path: &str, resource: &str, body: Option<&Value>) -> Answer {
    let body = body.map(ToString::to_string);
    app.send(Method::POST, &format!("{path}/resources/{resource}/signal"), None, body.as_deref()).await
}

async fn messages(app: &App, path: &str) -> Vec<Message> {
    app.store.inbox(stack_of(path), "2026-11-20T06:52:46Z".parse().expect("a time")).await.expect("the store")
}

/// Writes the row of the only resource as an engine would.
async fn write_row(app: &App, path: &str, state: State) {
    write_row_of(app, path, "OS::Heat::RandomString", state).await;
}

async fn write_row_of(app: &App, path: &str, resource_type: &str, state: State) {
    let leases = app
        .store
        .claim(EngineId(uuid::Uuid::nil()), std::time::Duration::from_secs(9), &[], 9)
        .await
        .expect("the store");
    let (id, now) = (kiln_resource::ResourceId(uuid::Uuid::nil()), "2026-11-20T06:52:46Z".parse().expect("a time"));
    let mut row = kiln_resource::Resource::new(stack_of(path), id, "one", resource_type, now);
    row.data.insert("user_id".to_owned(), "guest".into());
    (row.state, row.physical_id) = (state, Some("p".to_owned()));
    app.store.commit(leases[0], Batch { save: vec![row].into(), ..Batch::default() }).await.expect("the store");
    app.store.release(&leases).await.expect("the store");
}

#[tokio::test]
async fn signals_that_cannot_be_delivered_are_refused() {
    let app = App::new().await;
    let path = app.create("s", random_string()).await;
    let missing = signal(&app, &path, "three", None).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    assert_eq!(missing.json()["error"]["message"], "The Resource (three) could not be found in Stack s.");
    let early = signal(&app, &path, "one", None).await;
    assert_eq!(early.status, StatusCode::NOT_FOUND);
    assert_eq!(early.json()["error"]["type"], "ResourceNotAvailable");
    assert_eq!(early.json()["error"]["message"], "The Resource (one) is not available.");
    write_row(&app, &path, State::new(Action::Create, Status::Complete)).await;
    for (hook, text) in
        [("pre-create", "The \"pre-create\" hook is not defined on"), ("no", "Invalid hook type \"no\" for")]
    {
        let refused = signal(&app, &path, "one", Some(&json!({ "unset_hook": hook }))).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        assert_eq!(refused.json()["error"]["type"], "InvalidBreakPointHook");
        let text = format!("{text} RandomString \"one\" [p] Stack \"s\" [{}]", stack_of(&path));
        assert_eq!(refused.json()["error"]["message"], text);
    }
    let refused = signal(&app, &path, "one", Some(&json!({}))).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.json()["error"]["type"], "ResourceActionNotSupported");
    assert_eq!(refused.json()["error"]["message"], "signal is not supported for resource.");
    assert_eq!(messages(&app, &path).await, []);
}

/// Handles keep all signals in their metadata.
#[tokio::test]
async fn a_signal_that_makes_the_metadata_too_large_is_refused() {
    let app = App::new().await;
    let template = json!({
        "heat_template_version": "2018-08-31", "resources": {"one": {"type": "OS::Heat::WaitConditionHandle"}}
    });
    let path = app.create("s", template).await;
    let now = "2026-11-20T06:52:46Z".parse().expect("a time");
    let handle = "OS::Heat::WaitConditionHandle";
    let mut row =
        kiln_resource::Resource::new(stack_of(&path), kiln_resource::ResourceId(uuid::Uuid::nil()), "one", handle, now);
    row.state = State::new(Action::Create, Status::Complete);
    row.metadata = kiln_value::value!({"1": {"data": ("x".repeat(4_000_000))}});
    app.commit(stack_of(&path), Batch { save: vec![row].into(), ..Batch::default() }).await;
    let refused = signal(&app, &path, "one", Some(&json!({"data": "y".repeat(300_000)}))).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.json()["error"]["type"], "RequestLimitExceeded");
    assert_eq!(messages(&app, &path).await, []);
    let small = signal(&app, &path, "one", Some(&json!({"data": "y"}))).await;
    assert_eq!(small.status, StatusCode::OK, "{}", small.text);
}

/// An engine reads all signals of a stack at once.
#[tokio::test]
async fn signals_are_refused_while_many_are_not_handled() {
    let app = App::new().await;
    let template =
        json!({"heat_template_version": "2018-08-31", "resources": {"one": {"type": "OS::Heat::WaitConditionHandle"}}});
    let path = app.create("s", template).await;
    let now = "2026-11-20T06:52:46Z".parse().expect("a time");
    let (id, kind) = (kiln_resource::ResourceId(uuid::Uuid::nil()), "OS::Heat::WaitConditionHandle");
    let mut row = kiln_resource::Resource::new(stack_of(&path), id, "one", kind, now);
    row.state = State::new(Action::Create, Status::Complete);
    app.commit(stack_of(&path), Batch { save: vec![row].into(), ..Batch::default() }).await;
    let large = json!({"data": "y".repeat(900_000)});
    let mut sent = 0;
    let refused = loop {
        let answer = signal(&app, &path, "one", Some(&large)).await;
        if answer.status != StatusCode::OK {
            break answer;
        }
        sent += 1;
        assert!(sent < 100, "none is refused");
    };
    assert_eq!((refused.status, sent), (StatusCode::BAD_REQUEST, 37));
    assert_eq!(refused.json()["error"]["type"], "RequestLimitExceeded");
    // Small ones are still accepted, for example the reports of servers.
    assert_eq!(signal(&app, &path, "one", Some(&json!({"data": "y"}))).await.status, StatusCode::OK);
}

/// The engine writes the event.
#[tokio::test]
async fn a_suspended_resource_takes_no_signals() {
    let app = App::new().await;
    let path = app.create("s", random_string()).await;
    write_row(&app, &path, State::new(Action::Suspend, Status::Complete)).await;
    let refused = signal(&app, &path, "one", None).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.json()["error"]["message"], "Signal resource during SUSPEND is not supported.");
    let messages = messages(&app, &path).await;
    let [message] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!((message.body.kind(), message.resource.as_deref()), (MessageKind::RefusedSignal, Some("one")));
}

const HANDLE: &str = "OS::Heat::WaitConditionHandle";

fn handle() -> Value {
    json!({"heat_template_version": "2018-08-31", "resources": {"one": {"type": HANDLE}}})
}

/// The rows of a stack in progress change all the time, so that no cache has them.
#[tokio::test]
async fn a_signal_and_a_mark_read_one_row() {
    let store = kiln_store::MemoryStore::new(Arc::new(|| "2026-11-20T06:52:46Z".parse().expect("a time")));
    let app = App::on(Arc::new(store.clone()), user(&["member", "reader"]), Limits::default());
    let path = app.create("s", handle()).await;
    let now = "2026-11-20T06:52:46Z".parse().expect("a time");
    let row = |number: u128| {
        let (id, name) = (kiln_resource::ResourceId(uuid::Uuid::from_u128(number)), format!("r{number}"));
        kiln_resource::Resource::new(stack_of(&path), id, &name, HANDLE, now)
    };
    let rows: Vec<_> = (1..200).map(row).collect();
    app.commit(stack_of(&path), Batch { save: rows.into(), ..Batch::default() }).await;
    let before = store.rows_read().resources;
    for number in 1..=10 {
        write_row_of(&app, &path, HANDLE, State::new(Action::Create, Status::Complete)).await;
        let sent = signal(&app, &path, "one", Some(&json!({"id": number}))).await;
        assert_eq!(sent.status, StatusCode::OK, "{}", sent.text);
        let body = json!({"mark_unhealthy": true});
        let marked = app.json(Method::PATCH, &format!("{path}/resources/one"), &body).await;
        assert_eq!(marked.status, StatusCode::OK, "{}", marked.text);
    }
    assert_eq!(store.rows_read().resources - before, 20);
    let before = store.rows_read().resources;
    let marked = app.json(Method::PATCH, &format!("{path}/resources/p"), &json!({"mark_unhealthy": true})).await;
    assert_eq!(marked.status, StatusCode::OK, "{}", marked.text);
    assert_eq!(store.rows_read().resources - before, 2, "the row with the physical ID, and the rows of its name");
    let message = messages(&app, &path).await.pop().expect("a message");
    assert_eq!((message.body.kind(), message.resource.as_deref()), (MessageKind::MarkUnhealthy, Some("one")));
}

/// The database has refused the end of its operation.
#[tokio::test]
async fn a_row_that_a_failed_request_has_left_in_progress_can_be_marked() {
    let app = App::new().await;
    let path = app.create("s", handle()).await;
    write_row_of(&app, &path, HANDLE, State::new(Action::Create, Status::InProgress)).await;
    let mark =
        async || app.json(Method::PATCH, &format!("{path}/resources/one"), &json!({"mark_unhealthy": true})).await;
    let busy = mark().await;
    assert_eq!(busy.json()["error"]["type"], "ActionInProgress");
    app.settle("s").await;
    let marked = mark().await;
    assert_eq!(marked.status, StatusCode::OK, "{}", marked.text);
}

#[tokio::test]
async fn signals_are_sent_to_the_engine() {
    let app = App::new().await;
    let path = app.create("s", handle()).await;
    write_row_of(&app, &path, HANDLE, State::new(Action::Create, Status::Complete)).await;
    for body in [None, Some(json!({"status": "SUCCESS"}))] {
        let sent = signal(&app, &path, "one", body.as_ref()).await;
        assert_eq!((sent.status, sent.text.as_str()), (StatusCode::OK, "null"));
    }
    let messages = messages(&app, &path).await;
    let mut bodies: Vec<_> =
        messages.iter().map(|message| (message.body.kind(), text::json(message.body.details()))).collect();
    bodies.sort();
    let expected = ["null", r#"{"status": "SUCCESS"}"#].map(|body| (MessageKind::Signal, body.to_owned()));
    assert_eq!(bodies, expected);
    assert!(messages.iter().all(|message| message.resource.as_deref() == Some("one")));
}

/// Stack users read the metadata of their own resource only.
#[tokio::test]
async fn stack_users_have_one_resource() {
    let app = App::new().await;
    let path = app.create("s", handle()).await;
    write_row(&app, &path, State::new(Action::Create, Status::Complete)).await;
    let ask = async |id: &str, resource: &str| {
        let caller = Caller { user_id: id.to_owned(), ..user(&["heat_stack_user"]) };
        let app = App::on(app.store.clone(), caller, Limits::default());
        app.get(&format!("{path}/resources/{resource}/metadata")).await.status
    };
    assert_eq!(ask("guest", "one").await, StatusCode::OK);
    assert_eq!(ask("guest", "two").await, StatusCode::FORBIDDEN);
    assert_eq!(ask("other", "one").await, StatusCode::FORBIDDEN);
}

/// A reader may signal, and so may a stack user, but nobody of another project.
#[tokio::test]
async fn the_policy_decides_who_signals() {
    let app = App::new().await;
    let path = app.create("s", random_string()).await;
    for (roles, status) in [
        (&["heat_stack_user"][..], StatusCode::NOT_FOUND),
        (&["reader"], StatusCode::NOT_FOUND),
        (&["nobody"], StatusCode::FORBIDDEN),
    ] {
        let other = App::on(app.store.clone(), user(roles), Limits::default());
        assert_eq!(signal(&other, &path, "one", None).await.status, status, "{roles:?}");
    }
    let other = path.replace("tenant1", "tenant2");
    assert_eq!(signal(&app, &other, "one", None).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_hook_is_cleared_where_the_resource_waits() {
    let app = App::new().await;
    let template = json!({
        "heat_template_version": "2018-08-31",
        "resources": {"one": {"type": "OS::Heat::RandomString"}},
    });
    let hooks = json!({"resource_registry": {"resources": {"one": {"hooks": "pre-create"}}}});
    let body = json!({"stack_name": "s", "template": template, "environment": hooks});
    let answer = app.json(Method::POST, "/v1/tenant1/stacks", &body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
    let path = answer.header("location").trim_start_matches("http://localhost").to_owned();
    let stack = app.store.stack_by_name("tenant1", "s").await.unwrap().unwrap();
    let id = kiln_store::ResourceId(uuid::Uuid::from_u128(1));
    let mut row = kiln_store::Resource::new(stack.id, id, "one", "OS::Heat::RandomString", stack.created);
    let at = kiln_value::value!({"hook": "pre-create", "generation": 1, "waits": true});
    row.data.insert("kiln_hook".to_owned(), at);
    app.commit(stack.id, kiln_store::Batch { save: vec![row].into(), ..kiln_store::Batch::default() }).await;
    let other = signal(&app, &path, "one", Some(&json!({"unset_hook": "post-create"}))).await;
    assert_eq!(other.status, StatusCode::BAD_REQUEST, "{}", other.text);
    let cleared = signal(&app, &path, "one", Some(&json!({"unset_hook": "pre-create"}))).await;
    assert_eq!(cleared.status, StatusCode::OK, "{}", cleared.text);
    let sent = app.store.inbox(stack.id, "2027-01-01T00:00:00Z".parse().unwrap()).await.unwrap();
    let kinds: Vec<_> = sent.iter().map(|message| message.body.kind()).collect();
    assert_eq!(kinds, [kiln_store::MessageKind::ClearHook]);
}
