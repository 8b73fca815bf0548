//! Events show no hidden value.

use std::time::Duration;

use http::StatusCode;
use kiln_resource::{EngineId, EventId, Status};
use kiln_store::{Batch, Event, StackQuery};
use kiln_value::value;
use uuid::Uuid;

use crate::support::App;

const TEMPLATE: &str = r#"{
    "heat_template_version": "2013-05-23",
    "parameters": {"key": {"type": "string", "hidden": true}},
    "resources": {"value": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "key"}}}}
}"#;

/// Engines mask what a stack hides itself, and store what only a stack above it hides: readers mask that.
#[tokio::test]
async fn an_event_that_was_stored_with_a_hidden_value_does_not_show_it() {
    let app = App::new().await;
    let key = [("Parameters.member.1.ParameterKey", "key"), ("Parameters.member.1.ParameterValue", "swordfish")];
    let made = app.post("CreateStack", &[("StackName", "app"), ("TemplateBody", TEMPLATE), key[0], key[1]]).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.text);
    let stack = app.store.stacks(&StackQuery::default()).await.expect("the store").remove(0);
    let engine = EngineId(Uuid::from_u128(1));
    let leases = app.store.claim(engine, Duration::from_mins(1), &[stack.id], 1).await.expect("the store");
    let event = Event {
        operation: None,
        id: EventId(Uuid::from_u128(2)),
        stack: stack.id,
        root: stack.id,
        resource_name: "value".to_owned(),
        resource_type: "OS::Heat::Value".to_owned(),
        physical_id: None,
        action: "CREATE".to_owned(),
        status: Status::Complete,
        reason: "state changed".to_owned(),
        properties: value!({"value": "swordfish", "other": "public"}),
        time: stack.created,
    };
    app.store.commit(leases[0], Batch { events: vec![event], ..Batch::default() }).await.expect("the store");
    for params in [&[("StackName", "app")][..], &[]] {
        let shown = app.get("DescribeStackEvents", params).await.text;
        assert!(shown.contains("******") && shown.contains("public") && !shown.contains("swordfish"), "{shown}");
    }
}
