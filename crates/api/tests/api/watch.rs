//! Waiting for events: lists that wait, and streams.

use std::time::Duration;

use axum::body::BodyDataStream;
use futures::StreamExt;
use http::StatusCode;
use kiln_stack::Clock as _;
use kiln_store::{Batch, Event, EventId};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{App, PROJECT, Stopped, user};

fn template() -> Value {
    json!({"heat_template_version": "2018-08-31", "resources": {"a": {"type": "OS::Heat::Value", "properties": {"value": 1}}}})
}

/// Stores an event of a resource, as an engine does.
async fn happen(app: &App, name: &str, number: u128) -> String {
    let stack = app.store.stack_by_name(PROJECT, name).await.expect("read").expect("a stack");
    let id = EventId(uuid::Uuid::from_u128(number));
    let event = Event {
        operation: None,
        id,
        stack: stack.id,
        root: stack.root,
        resource_name: "a".to_owned(),
        resource_type: "OS::Heat::Value".to_owned(),
        physical_id: None,
        action: "CREATE".to_owned(),
        status: kiln_resource::Status::Complete,
        reason: format!("number {number}"),
        properties: kiln_value::Value::Null,
        time: Stopped.now(),
    };
    app.commit(stack.id, Batch { events: vec![event], ..Batch::default() }).await;
    id.to_string()
}

/// The IDs and reasons of the events in the next part of a stream.
async fn part(stream: &mut BodyDataStream) -> Vec<(String, String)> {
    loop {
        let bytes = tokio::time::timeout(Duration::from_secs(10), stream.next()).await.expect("in time");
        let bytes = bytes.expect("a part").expect("bytes");
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        let mut events = Vec::new();
        for event in text.split("\n\n").filter(|event| event.starts_with("id: ")) {
            let (id, data) = event.split_once("\ndata: ").expect("data");
            let data: Value = serde_json::from_str(data).expect("JSON");
            assert_eq!(data["id"], id["id: ".len()..]);
            events.push((data["id"].as_str().expect("an ID").to_owned(), data["resource_status_reason"].to_string()));
        }
        if !events.is_empty() {
            return events;
        }
    }
}

#[tokio::test]
async fn a_list_waits_for_its_first_event() {
    let app = App::new().await;
    let quiet = app.create("quiet", template()).await;
    let event = app.get(&format!("{quiet}/events?sort_dir=desc")).await.json()["events"][0]["id"].clone();
    let quiet = format!("{quiet}/events?sort_dir=asc&marker={}&wait=50", event.as_str().unwrap());
    let path = app.create("s", template()).await;
    let events = app.get(&format!("{path}/events?sort_dir=asc&wait=30")).await;
    assert_eq!(events.header("preference-applied"), "wait=30", "there are events already");
    let last = events.json()["events"][0]["id"].as_str().unwrap().to_owned();
    let none = app.get(&format!("{path}/events?sort_dir=asc&marker={last}&wait=0")).await;
    assert_eq!(none.json()["events"], json!([]));
    assert_eq!(app.get(&format!("{path}/events")).await.header("preference-applied"), "");

    let waiting = format!("{path}/events?sort_dir=asc&marker={last}&wait=50");
    let project = format!("/v1/{PROJECT}/events?marker={last}&wait=50");
    let answers = async {
        tokio::join!(app.get(&waiting), app.get(&project), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            // An event of another stack does not matter.
            app.create("other", template()).await;
            happen(&app, "s", 1).await
        })
    };
    let (answer, of_project, id) = tokio::select! {
        answers = answers => answers,
        _ = app.get(&quiet) => panic!("an answer without an event comes earlier"),
    };
    assert_eq!(answer.json()["events"][0]["id"], id.as_str(), "{}", answer.text);
    assert_eq!(of_project.json()["events"][0]["resource_name"], "other", "{}", of_project.text);
    assert_eq!(app.get(&format!("{path}/events?wait=-1")).await.status, StatusCode::BAD_REQUEST);
    // Not longer than a minute.
    let long = app.get(&format!("{path}/events?wait=99999")).await;
    assert_eq!(long.header("preference-applied"), "wait=60");
}

#[tokio::test]
async fn a_stream_goes_on_after_the_last_event() {
    let app = App::new().await;
    let path = app.create("s", template()).await;
    let open = async |path: &str, last: Option<&str>| {
        let mut headers = vec![("accept", "text/event-stream")];
        headers.extend(last.map(|last| ("last-event-id", last)));
        let response = app.open(path, &headers).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        response.into_body().into_data_stream()
    };
    let mut stream = open(&format!("{path}/events"), None).await;
    let mut project = open(&format!("/v1/{PROJECT}/events"), None).await;
    let first = part(&mut stream).await;
    assert_eq!(first.len(), 1, "the begin: {first:?}");
    let (events, of_project, one) = tokio::join!(part(&mut stream), part(&mut project), happen(&app, "s", 1));
    assert_eq!(events, [(one.clone(), "\"number 1\"".to_owned())]);
    assert_eq!(of_project, events, "a project is watched from now");
    let two = happen(&app, "s", 2).await;
    assert_eq!(part(&mut stream).await[0].0, two);

    // Another connection goes on after what the client has.
    drop(stream);
    let mut stream = open(&format!("{path}/events"), Some(&one)).await;
    assert_eq!(part(&mut stream).await, [(two.clone(), "\"number 2\"".to_owned())]);
    let mut project = open(&format!("/v1/{PROJECT}/events"), Some(&first[0].0)).await;
    let ids: Vec<String> = part(&mut project).await.into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, [one, two]);
    let unknown = [("accept", "text/event-stream"), ("last-event-id", "00000000-0000-0000-0000-000000000009")];
    assert_eq!(app.open(&format!("{path}/events"), &unknown).await.status(), StatusCode::NOT_FOUND);
}

/// More events than one read returns are all sent, once each and in order.
#[tokio::test]
async fn a_long_history_is_sent_in_parts() {
    let app = App::new().await;
    let path = app.create("s", template()).await;
    let mut expected = vec![];
    for number in 1..=250 {
        expected.push(happen(&app, "s", number).await);
    }
    let response = app.open(&format!("{path}/events"), &[("accept", "text/event-stream")]).await;
    let mut stream = response.into_body().into_data_stream();
    let mut ids = Vec::new();
    while ids.len() < 251 {
        ids.extend(part(&mut stream).await.into_iter().map(|(id, _)| id));
    }
    assert_eq!(ids[1..], expected);
}

#[tokio::test]
async fn watching_is_subject_to_the_policy() {
    let app = App::new().await;
    let stack_user = App::on(app.store.clone(), user(&["heat_stack_user"]), kiln_service::Limits::default());
    let stream = [("accept", "text/event-stream")];
    assert_eq!(stack_user.open(&format!("/v1/{PROJECT}/events"), &stream).await.status(), StatusCode::FORBIDDEN);
    assert_eq!(app.open("/v1/tenant2/events", &stream).await.status(), StatusCode::FORBIDDEN);
}

/// A service that stops does not wait for its watchers.
#[tokio::test]
async fn streams_end_with_the_service() {
    let app = App::new().await;
    let path = app.create("s", template()).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(app.api.clone().serve(listener, async { drop(stopped.await) }));
    let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path}/events HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    while !text.contains("data: ") {
        let mut bytes = [0; 4096];
        let count = client.read(&mut bytes).await.unwrap();
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(10), serving).await.expect("in time").unwrap().unwrap();
}
