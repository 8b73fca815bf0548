//! Resources are forgotten by the engine, or refused at once; orphans are listed.

use http::{Method, StatusCode};
use kiln_resource::{Action, ResourceId, StackId, State, Status};
use kiln_service::Limits;
use kiln_store::{Batch, MessageKind, Orphan, Resource};
use kiln_value::value;
use serde_json::{Value, json};

use crate::support::{App, PROJECT, user};

fn template() -> Value {
    json!({"heat_template_version": "2018-08-31", "resources": {"one": {"type": "OS::Heat::RandomString"}}})
}

fn stack_of(path: &str) -> StackId {
    path.rsplit('/').next().unwrap_or_default().parse().expect("an ID")
}

fn row(path: &str, name: &str, state: State, child: Option<StackId>) -> Resource {
    let now = "2026-11-20T06:52:46Z".parse().expect("a time");
    let id = ResourceId(uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_DNS, name.as_bytes()));
    Resource { state, child, ..Resource::new(stack_of(path), id, name, "OS::Heat::RandomString", now) }
}

#[tokio::test]
async fn only_a_delete_can_be_given_up() {
    let app = App::new().await;
    let path = app.create("s", template()).await;
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
    assert_eq!((sent.len(), sent[0].kind, sent[0].resource.as_deref()), (1, MessageKind::Forget, Some("stuck")));
    let body = value!({
        "user_id": "alice-id", "username": "alice", "reason": "host lost", "path": "stuck", "region": null,
    });
    assert_eq!(sent[0].body, body);

    let reader = App::on(app.store.clone(), user(&["heat_stack_user"]), Limits::default());
    let refused = reader.json(Method::POST, &format!("{path}/resources/stuck/forget"), &json!({})).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn orphans_are_listed_in_pages_and_removed() {
    let app = App::new().await;
    let path = app.create("s", template()).await;
    let stack = app.store.stack(stack_of(&path)).await.expect("the store").expect("there");
    let orphan = |number: u128, project: &str| Orphan {
        id: ResourceId(uuid::Uuid::from_u128(number)),
        project: project.to_owned(),
        stack: stack.id,
        stack_name: "s".to_owned(),
        path: format!("group/{number}"),
        resource_type: "OS::Nova::Server".to_owned(),
        physical_id: Some("p".to_owned()),
        region: None,
        user_id: "alice-id".to_owned(),
        username: "alice".to_owned(),
        reason: "host lost".to_owned(),
        time: jiff::Timestamp::from_second(1_800_000_000 + i64::try_from(number).expect("small")).expect("a time"),
    };
    let orphans = vec![orphan(1, PROJECT), orphan(2, PROJECT), orphan(3, "other")];
    app.commit(stack.id, Batch { orphans, ..Batch::default() }).await;
    let paths = |body: &Value| -> Vec<String> {
        let of = |one: &Value| one["resource_path"].as_str().expect("a path").to_owned();
        body["orphans"].as_array().expect("a list").iter().map(of).collect()
    };
    let all = app.get("/v1/tenant1/orphans").await.json();
    assert_eq!(paths(&all), ["group/2", "group/1"]);
    assert_eq!(
        all["orphans"][1],
        json!({
            "id": "00000000-0000-0000-0000-000000000001", "project": PROJECT, "stack_id": stack.id.to_string(),
            "stack_name": "s", "resource_path": "group/1", "resource_type": "OS::Nova::Server",
            "physical_resource_id": "p", "region": null, "user_id": "alice-id", "user_name": "alice",
            "reason": "host lost", "forgotten_at": "2027-01-15T08:00:01Z",
        })
    );
    let first = app.get("/v1/tenant1/orphans?limit=1").await.json();
    assert_eq!(paths(&first), ["group/2"]);
    let next = first["links"][0]["href"].as_str().expect("a link").trim_start_matches("http://localhost");
    assert_eq!(paths(&app.get(next).await.json()), ["group/1"]);
    let of_none = format!("/v1/tenant1/orphans?stack_id={}", uuid::Uuid::nil());
    assert_eq!(paths(&app.get(&of_none).await.json()), Vec::<String>::new());
    assert_eq!(app.get("/v1/tenant1/orphans?stack_id=x").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(app.get("/v1/tenant1/orphans?global_tenant=true").await.status, StatusCode::FORBIDDEN);
    assert_eq!(app.get("/v1/other/orphans").await.status, StatusCode::FORBIDDEN);

    let delete = async |id: u128| {
        let path = format!("/v1/tenant1/orphans/{}", uuid::Uuid::from_u128(id));
        app.send(Method::DELETE, &path, None, None).await.status
    };
    assert_eq!(delete(2).await, StatusCode::NO_CONTENT);
    assert_eq!((delete(2).await, delete(3).await), (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND));
    assert_eq!(paths(&app.get("/v1/tenant1/orphans").await.json()), ["group/1"]);
}
