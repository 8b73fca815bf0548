//! Long lists are sent in parts.

use futures::StreamExt as _;
use http::StatusCode;
use kiln_resource::{Action, ResourceId, State, Status};
use kiln_service::Limits;
use kiln_store::{Batch, Event, EventId, Resource};
use serde_json::{Value, json};

use crate::support::{App, user};

const MANY: u128 = 1_700;

fn name(number: u128) -> String {
    format!("r{number:05}")
}

async fn stack_with_many(app: &App) -> String {
    let resources: Value = (0..MANY)
        .map(|n| (name(n), json!({"type": "OS::Heat::RandomString"})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let path = app.create("s", json!({"heat_template_version": "2018-08-31", "resources": resources})).await;
    let id: kiln_resource::StackId = path.rsplit('/').next().expect("an ID").parse().expect("an ID");
    let now = "2026-11-20T06:52:46Z".parse().expect("a time");
    let row = |n: u128| {
        let id_of_row = ResourceId(uuid::Uuid::from_u128(n + 1));
        let state = State::new(Action::Create, Status::Complete);
        Resource { state, ..Resource::new(id, id_of_row, &name(n), "OS::Heat::RandomString", now) }
    };
    let event = |n: u128| Event {
        operation: None,
        id: EventId(uuid::Uuid::from_u128(n + 1)),
        stack: id,
        root: id,
        resource_name: name(n),
        resource_type: "OS::Heat::RandomString".to_owned(),
        physical_id: None,
        action: "CREATE".to_owned(),
        status: Status::Complete,
        reason: "state changed".to_owned(),
        properties: kiln_value::Value::Null,
        time: now,
    };
    // The last 100 have no row yet.
    let save = (0..MANY - 100).map(row).collect();
    app.commit(id, Batch { save, events: (0..MANY).map(event).collect(), ..Batch::default() }).await;
    path
}

/// The size of each part of a response, and the whole.
async fn parts(app: &App, path: &str) -> (Vec<usize>, Value) {
    let response = app.open(path, &[]).await;
    assert_eq!(response.status(), StatusCode::OK);
    let mut stream = response.into_body().into_data_stream();
    let (mut sizes, mut text) = (Vec::new(), Vec::new());
    while let Some(part) = stream.next().await {
        let part = part.expect("a part");
        sizes.push(part.len());
        text.extend_from_slice(&part);
    }
    (sizes, serde_json::from_slice(&text).expect("JSON"))
}

#[tokio::test]
async fn every_entry_of_a_long_list_is_sent_once_and_in_order() {
    let store = App::new().await.store;
    let limits = Limits { resources_per_stack: None, ..Limits::default() };
    let app = App::on(store, user(&["member", "reader"]), limits);
    let path = stack_with_many(&app).await;
    let (sizes, body) = parts(&app, &format!("{path}/resources")).await;
    let names = |body: &Value, key: &str| -> Vec<String> {
        let name = |one: &Value| one["resource_name"].as_str().expect("a name").to_owned();
        body[key].as_array().expect("a list").iter().map(name).collect()
    };
    let all: Vec<String> = (0..MANY).map(name).collect();
    assert_eq!(names(&body, "resources"), all);
    assert_eq!(body["resources"][1_699]["resource_status"], "INIT_COMPLETE");
    let longest = sizes.iter().max().expect("parts");
    assert!(sizes.len() >= 3 && *longest < 800_000, "{sizes:?}");
    let (_, filtered) = parts(&app, &format!("{path}/resources?name=r01699&name=r00001")).await;
    assert_eq!(names(&filtered, "resources"), ["r00001", "r01699"]);

    let (sizes, body) = parts(&app, &format!("{path}/events?sort_dir=asc")).await;
    assert_eq!(names(&body, "events")[1..], all, "after the event of the stack");
    assert!(sizes.len() >= 3, "{sizes:?}");
    let marker = body["events"][1_600]["id"].as_str().expect("an ID");
    let (sizes, rest) = parts(&app, &format!("{path}/events?sort_dir=asc&marker={marker}&nested_depth=9")).await;
    assert_eq!((names(&rest, "events"), sizes.len()), (all[1_600..].to_vec(), 1));
    let (_, some) = parts(&app, &format!("{path}/events?sort_dir=asc&limit=600")).await;
    assert_eq!(names(&some, "events").len(), 600);
    let (_, two) = parts(&app, &format!("{path}/events?resource_name=r00001&resource_name=r01500")).await;
    assert_eq!(names(&two, "events"), ["r01500", "r00001"]);
}
