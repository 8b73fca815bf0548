//! Users of resources, who belong to a project of their own: signals and metadata.

use std::time::Duration;

use http::{Method, Request};
use jiff::Timestamp;
use kiln_cfn::Options;
use kiln_resource::{Action, Resource, State, Status, StoredDefinition};
use kiln_store::{Batch, DesiredText, NewStack, ResourceId, StackId};
use kiln_value::value;
use uuid::Uuid;

use crate::support::App;

/// The caller of [`App`] and their project.
const USER: &str = "alice-id";
const PROJECT: &str = "tenant1";

/// A stack in another project, whose users are in that of the caller: `mine` belongs to the caller, `other` does not.
async fn stack(app: &App) -> String {
    stack_of(app, Vec::new()).await
}

/// The same with other rows, unless there are none.
async fn stack_of(app: &App, rows: Vec<Resource>) -> String {
    let id = StackId(Uuid::from_u128(1));
    let now: Timestamp = "2026-11-20T06:52:45Z".parse().expect("a time");
    let handle = value!({ "type": "OS::Heat::WaitConditionHandle" });
    let template = value!({
        "heat_template_version": "2018-08-31",
        "resources": { "mine": (handle.clone()), "other": handle, "waiting": { "type": "OS::Heat::None" } },
    });
    let json = |value: &kiln_value::Value| kiln_value::text::json(value);
    let desired = DesiredText { template: json(&template), environment: "{}".into(), files: "{}".into() };
    let new = NewStack {
        operation: None,
        preflight: false,
        planned: None,
        id,
        name: "app".into(),
        project: "owners".into(),
        parent: None,
        root: id,
        depth: 0,
        action: Action::Create,
        desired,
        disable_rollback: true,
        timeout_mins: None,
        tags: Vec::new(),
        username: "bob".into(),
        user_id: "bob-id".into(),
        credentials: None,
        user_project: Some(PROJECT.into()),
        adopt: None,
        now,
    };
    app.store.create_stack(new).await.expect("a stack");
    let owner = kiln_store::EngineId(Uuid::from_u128(9));
    let lease = app.store.claim(owner, Duration::from_mins(1), &[id], 1).await.expect("a lease").remove(0);
    let row = |number, name: &str, user: &str| {
        let row = Resource::new(id, ResourceId(Uuid::from_u128(number)), name, "OS::Heat::WaitConditionHandle", now);
        let data = value!({ "user_id": user }).as_map().cloned().unwrap_or_default();
        Resource {
            state: State::new(Action::Create, Status::Complete),
            implementation: "OS::Heat::WaitConditionHandle".into(),
            metadata: value!({ "for": name }),
            data,
            ..row
        }
    };
    let own = || vec![row(11, "mine", USER), row(12, "other", "somebody")];
    let batch = Batch { save: if rows.is_empty() { own() } else { rows }.into(), ..Batch::default() };
    app.store.commit(lease, batch).await.expect("rows");
    format!("arn:openstack:heat::owners:stacks/app/{}", id.0)
}

/// The rows of a user with an access policy, and of the resources that it is about.
fn with_policies(policies: &kiln_value::Value) -> Vec<Resource> {
    let now: Timestamp = "2026-11-20T06:52:45Z".parse().expect("a time");
    let row = |number, name: &str, kind: &str, properties: kiln_value::Value, user: &str| {
        let properties = properties.as_map().cloned().unwrap_or_default();
        let definition = StoredDefinition::of_type(kind).with_properties(properties.clone(), properties);
        Resource {
            state: State::new(Action::Create, Status::Complete),
            implementation: kind.into(),
            data: value!({ "user_id": user }).as_map().cloned().unwrap_or_default(),
            definition: Some(std::sync::Arc::new(definition)),
            ..Resource::new(StackId(Uuid::from_u128(1)), ResourceId(Uuid::from_u128(number)), name, kind, now)
        }
    };
    let handle = "OS::Heat::WaitConditionHandle";
    vec![
        row(21, "other", handle, value!({}), "somebody"),
        row(22, "waiting", handle, value!({}), "somebody"),
        row(23, "policy", "OS::Heat::AccessPolicy", value!({"AllowedResources": ["waiting"]}), ""),
        row(24, "mine", "AWS::IAM::User", value!({"Policies": (policies.clone())}), USER),
    ]
}

#[tokio::test]
async fn policies_name_what_a_user_can_read() {
    for (policies, readable) in [
        (value!([]), vec!["mine", "other", "waiting"]),
        (value!(["policy"]), vec!["mine", "waiting"]),
        (value!(["policy", "missing"]), vec!["mine"]),
        (value!([{"an": "IAM policy"}]), vec!["mine", "other", "waiting"]),
    ] {
        let app = App::of(&["heat_stack_user"], Options::default()).await;
        stack_of(&app, with_policies(&policies)).await;
        let mut read = Vec::new();
        for name in ["mine", "other", "waiting"] {
            let answer = app.get("DescribeStackResource", &[("StackName", "app"), ("LogicalResourceId", name)]).await;
            read.extend((answer.status == 200).then_some(name));
        }
        assert_eq!(read, readable, "{policies:?}");
    }
}

async fn messages(app: &App) -> Vec<kiln_store::Message> {
    let later: Timestamp = "2100-01-01T00:00:00Z".parse().expect("a time");
    app.store.inbox(StackId(Uuid::from_u128(1)), later).await.expect("messages")
}

#[tokio::test]
async fn a_stack_user_reads_the_metadata_of_its_own_resource() {
    let app = App::of(&["heat_stack_user"], Options::default()).await;
    let arn = stack(&app).await;
    for named in ["app", arn.as_str()] {
        let own = app.get("DescribeStackResource", &[("StackName", named), ("LogicalResourceId", "mine")]).await;
        assert_eq!(own.element("Metadata"), "{\"for\": \"mine\"}");
        for name in ["other", "waiting", "none"] {
            let answer = app.get("DescribeStackResource", &[("StackName", named), ("LogicalResourceId", name)]).await;
            assert_eq!((answer.status.as_u16(), answer.element("Code")), (403, "AccessDenied"), "{name}");
        }
        for action in ["DescribeStacks", "DescribeStackResources", "GetTemplate", "DeleteStack"] {
            assert_eq!(app.get(action, &[("StackName", named)]).await.status, 403, "{action}");
        }
    }
    let member = App::on(app.store.clone(), &["member", "reader"], Options::default());
    let answer = member.get("DescribeStacks", &[("StackName", "app")]).await;
    assert_eq!(answer.element("Code"), "ValidationError", "the name of a stack in another project");
}

#[tokio::test]
async fn signals_reach_the_resource() {
    let app = App::of(&["heat_stack_user"], Options::default()).await;
    let arn = stack(&app).await;
    let path = |kind: &str, resource: &str| {
        format!("/v1/{kind}/{}/resources/{resource}", arn.replacen(':', "%3A", 3).replacen("owners:", "owners%3A", 1))
    };
    let send = async |method: Method, path: String, body: &str| {
        app.send(Request::builder().method(method).uri(path), body.to_owned()).await
    };
    let signalled = send(Method::POST, path("signal", "mine"), "{\"status\": \"SUCCESS\"}").await;
    assert_eq!((signalled.status.as_u16(), signalled.text.as_str()), (200, ""));
    assert!(signalled.kind.starts_with("text/html"));
    assert_eq!(send(Method::POST, path("signal", "mine"), "").await.status, 200, "without details");
    let waiting = send(Method::PUT, path("waitcondition", "mine"), "{\"Status\": \"SUCCESS\"}").await;
    assert_eq!((waiting.status.as_u16(), waiting.text.as_str()), (200, "<resource>mine</resource>"));
    assert_eq!(waiting.kind, "application/xml");
    let bodies: Vec<_> = messages(&app).await.into_iter().map(|message| message.body).collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies.contains(&kiln_store::MessageBody::Signal(value!({ "status": "SUCCESS" }))), "{bodies:?}");

    let refused = async |method: Method, path: String, body: &str| {
        let answer = send(method, path, body).await;
        assert_eq!(answer.status, 400, "{}", answer.text);
        answer.element("Code").to_owned()
    };
    assert_eq!(refused(Method::POST, path("signal", "mine"), "text").await, "InvalidParameterValue");
    assert_eq!(refused(Method::POST, path("signal", "none"), "").await, "InvalidParameterValue");
    assert_eq!(refused(Method::POST, "/v1/signal/arn:aws:x".into(), "").await, "InvalidParameterValue");
    assert_eq!(refused(Method::POST, format!("/v1/signal/{arn}"), "").await, "InvalidParameterValue", "a stack");
    let foreign = path("signal", "mine").replace("owners", "others");
    assert_eq!(refused(Method::POST, foreign, "").await, "InvalidParameterValue");
    assert_eq!(send(Method::GET, path("signal", "mine"), "").await.status, 404);
    assert_eq!(send(Method::POST, path("waitcondition", "mine"), "").await.status, 404);
    assert_eq!(messages(&app).await.len(), 3, "no message of a refused signal");
}
