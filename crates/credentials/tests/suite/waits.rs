//! Wait conditions whose signals are left in Swift or Zaqar, and those that need none.

use kiln_resource::Cloud;
use kiln_value::{Map, value};

use super::cut::killed_in;
use super::users::{quiet_world, world};
use super::*;

fn template(transport: &str, count: u32) -> TemplateText {
    let text = format!(
        "
heat_template_version: 2018-08-31
resources:
  handle: {{type: OS::Heat::WaitConditionHandle, properties: {{signal_transport: {transport}}}}}
  wait: {{type: OS::Heat::WaitCondition, properties: {{handle: {{get_resource: handle}}, timeout: 30, count: {count}}}}}
outputs:
  signal: {{value: {{get_attr: [handle, signal]}}}}
  data: {{value: {{get_attr: [wait, data]}}}}
"
    );
    TemplateText::parse(&text, &Limits::default()).expect("a template")
}

/// What the attribute `signal` says, as soon as the handle is created.
async fn address(world: &World, stack: &Stack) -> Map {
    for _ in 0..2_000 {
        let rows = world.service.backends.store.resources(stack.id).await.expect("read");
        if rows.iter().any(|row| row.name == "handle" && row.state.status == Status::Complete) {
            let stack = world.service.backends.store.stack(stack.id).await.expect("read").expect("there");
            let text = world.output(&stack, "signal").await;
            return serde_json::from_str(text.as_str().expect("a text")).expect("a map");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the handle is not created");
}

/// Leaves a signal at its place.
async fn leave(world: &World, address: &Map, signal: &Value) {
    if let Some(url) = address.get("alarm_url").and_then(Value::as_str) {
        let (status, _) = world.send(http::Method::PUT, url, Some(kiln_value::text::json(signal))).await;
        assert_eq!(status, 201);
        return;
    }
    let queue = address.get("queue_id").and_then(Value::as_str).expect("a queue");
    let post = CloudRequest::new("messaging", Method::Post, format!("/v2/queues/{queue}/messages"));
    let post = post.body(value!({"messages": [{"ttl": 600, "body": (signal.clone())}]}));
    world.cloud_of(address, "").await.call(post).await.expect("posted");
}

const TRANSPORTS: [&str; 2] = ["TEMP_URL_SIGNAL", "ZAQAR_SIGNAL"];

#[tokio::test]
async fn signals_that_are_left_at_their_place_are_counted() {
    for transport in TRANSPORTS {
        let world = world().await;
        world.add_to_catalog().await;
        let alice = world.caller(world.cloud.users().demo, "demo").await;
        let before = world.left();
        let stack = world.create_of(&alice, "s", template(transport, 25)).await.expect("a stack");
        let address = address(&world, &stack).await;
        // More than a step reads at once. Another signal with the same ID counts once.
        for number in 1..=24 {
            leave(&world, &address, &value!({"id": number, "data": (number * 2)})).await;
        }
        leave(&world, &address, &value!({"id": 24, "data": "again", "status": "SUCCESS"})).await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        let stack = world.service.backends.store.stack(stack.id).await.expect("read").expect("there");
        assert!(stack.is_pending(), "{transport}: {}", stack.reason);
        leave(&world, &address, &value!({"data": {"last": true}})).await;
        let stack = world.settled(stack.id).await;
        assert!(stack.state.is_complete(Action::Create), "{transport}: {}", stack.reason);
        let data = world.output(&stack, "data").await;
        let data: Map = serde_json::from_str(data.as_str().expect("a text")).expect("a map");
        assert_eq!((data.len(), data.get("7"), data.get("24")), (25, Some(&value!(14)), Some(&value!("again"))));
        assert_eq!(data.get("25"), Some(&value!({"last": true})), "{transport}");
        world.deleted_whole(&stack, before, transport).await;
    }
}

#[tokio::test]
async fn a_failure_at_the_place_fails_the_condition() {
    for transport in TRANSPORTS {
        for (signal, reason) in [
            (value!({"status": "FAILURE", "reason": "disk full"}), "WaitConditionFailure: resources.wait: disk full"),
            (value!({"status": "maybe"}), "ValueError: resources.wait: Metadata format invalid"),
        ] {
            let world = world().await;
            world.add_to_catalog().await;
            let alice = world.caller(world.cloud.users().demo, "demo").await;
            let stack = world.create_of(&alice, "s", template(transport, 2)).await.expect("a stack");
            leave(&world, &address(&world, &stack).await, &signal).await;
            let stack = world.settled(stack.id).await;
            assert_eq!(stack.state, State::new(Action::Create, Status::Failed));
            assert!(stack.reason.ends_with(reason), "{transport}: {}", stack.reason);
        }
    }
}

#[tokio::test]
async fn a_handle_without_signals_ends_the_wait() {
    let world = world().await;
    world.add_to_catalog().await;
    let alice = world.caller(world.cloud.users().demo, "demo").await;
    let stack = world.create_of(&alice, "s", template("NO_SIGNAL", 2)).await.expect("a stack");
    let stack = world.settled(stack.id).await;
    assert!(stack.state.is_complete(Action::Create), "{}", stack.reason);
    assert_eq!(world.output(&stack, "data").await, value!(r#"{"1": null, "2": null}"#));
    let query = kiln_store::EventQuery { stacks: vec![stack.id], ..kiln_store::EventQuery::default() };
    let events = world.service.backends.store.events(&query).await.expect("read");
    let signals: Vec<&str> =
        events.iter().filter(|event| event.action == "SIGNAL").map(|event| event.reason.as_str()).collect();
    let reason = |number: u32| format!("Signal: status:SUCCESS reason:Signal {number} received");
    assert_eq!(signals, [reason(1), reason(2)]);
}

/// The first engine is killed at some access to its store, and another one goes on: no signal is lost or counts twice.
#[tokio::test]
async fn an_engine_that_is_killed_anywhere_loses_no_signal() {
    let runs = (4..100).step_by(7).zip(TRANSPORTS.into_iter().cycle());
    let killed = killed_in(runs.map(async |(at, transport)| {
        let world = quiet_world().await;
        world.add_to_catalog().await;
        let alice = world.caller(world.cloud.users().demo, "demo").await;
        let before = world.left();
        let (engines, steps) = world.run_engines(at);
        let stack = world.create_of(&alice, "s", template(transport, 3)).await.expect("a stack");
        let address = address(&world, &stack).await;
        for number in 1..=3 {
            leave(&world, &address, &value!({ "data": number })).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let stack = world.settled(stack.id).await;
        assert!(stack.state.is_complete(Action::Create), "{transport} at {at}: {}", stack.reason);
        assert_eq!(world.output(&stack, "data").await, value!(r#"{"1": 1, "2": 2, "3": 3}"#), "{transport} at {at}");
        world.deleted_whole(&stack, before, &format!("{transport} at {at}")).await;
        engines.abort();
        steps.disarm() > at
    }))
    .await;
    assert!(killed > 4, "{killed} engines were killed");
}
