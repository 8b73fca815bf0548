//! Work that must not grow faster than what there is to do, in rows that are read.

use std::sync::Arc;
use std::time::Duration;

use kiln_resource::{Action, Step};
use kiln_store::{MemoryStore, MessageBody, Store};
use kiln_value::{Value, value};

use crate::groups::bench::Bench;
use crate::timers::cluster::{Answer, Call, Cluster, done};
use crate::timers::message;

/// A store that can be asked what was read.
fn counting(clock: &Arc<dyn kiln_stack::Clock>) -> MemoryStore {
    let clock = Arc::clone(clock);
    MemoryStore::new(Arc::new(move || clock.now()))
}

#[tokio::test(start_paused = true)]
async fn messages_that_wait_for_an_operation_are_read_once() {
    const SIGNALS: usize = 40;
    let mut cluster = Cluster::new(|_, call, _| match call {
        Call::Start(Action::Create) => Ok(Answer::After(Duration::from_mins(5), Step::done().id("object"))),
        _ => done(),
    });
    let store = counting(&cluster.backends.clock);
    cluster.backends.store = Arc::new(store.clone());
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    let mut sent = Vec::new();
    for number in 0..SIGNALS {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let body = value!({"n": number});
        cluster.backends.store.send(&message(&cluster, id, MessageBody::Signal(body.clone()))).await.expect("sent");
        sent.push(Call::Receive(body));
    }
    cluster.settled(id).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let read = store.rows_read().messages;
    assert!(read <= SIGNALS, "{SIGNALS} signals: read {read}");
    let received: Vec<Call> = cluster.driver.seen().into_iter().map(|(_, call)| call).skip(1).collect();
    assert_eq!(received, sent);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn an_ended_nested_stack_is_read_without_the_others() {
    const GROUPS: usize = 30;
    let mut bench = Bench::new();
    let store = counting(&bench.backends.clock);
    bench.backends.store = Arc::new(store.clone());
    let group = |number: usize| {
        let member = value!({"type": "OS::Heat::TestResource", "properties": {"wait_secs": (2 * number)}});
        let group = value!({"type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": member}});
        (format!("g{number}"), group)
    };
    let groups = Value::Map((1..=GROUPS).map(group).collect());
    let template = value!({"heat_template_version": "2018-08-31", "resources": groups});
    let engine = bench.engine();
    let id = bench.create(&kiln_value::text::json(&template), None).await;
    bench.completed(id).await;
    let read = store.rows_read().children;
    assert!(read <= 3 * GROUPS, "{GROUPS} nested stacks: read {read}");
    engine.kill();
}

/// The hidden values of the stacks around it are needed when a member fails.
#[tokio::test(start_paused = true)]
async fn a_failed_member_is_masked_without_the_rows_of_the_others() {
    let template = |count: usize| {
        let member = value!({"type": "member.yaml", "properties": {"key": {"get_param": "key"}}});
        let group = value!({"type": "OS::Heat::ResourceGroup", "properties": {
            "count": (i64::try_from(count).expect("small")), "resource_def": member,
        }});
        let key = value!({"type": "string", "hidden": true, "default": "swordfish"});
        let parameters = value!({"key": key});
        kiln_value::text::json(&value!({
            "heat_template_version": "2018-08-31", "parameters": parameters, "resources": {"group": group},
        }))
    };
    let member = "{heat_template_version: 2018-08-31, parameters: {key: {type: string}}, resources: {one: {
        type: OS::Heat::TestResource, properties: {value: {list_join: [x, [{get_param: key}, y]]}, fail: true}}}}";
    let read = async |count: usize| {
        let mut bench = Bench::new();
        let store = counting(&bench.backends.clock);
        bench.backends.store = Arc::new(store.clone());
        let engine = bench.engine();
        let id = bench.create("{heat_template_version: 2018-08-31}", None).await;
        bench.completed(id).await;
        bench.update_with(id, &template(count), &[("member.yaml", member)]).await;
        assert!(bench.settled(id).await.state.failed());
        engine.kill();
        store.rows_read().resources
    };
    let (few, many) = (read(20).await, read(80).await);
    assert!(many <= 5 * few, "rows read: {few} for 20 members, {many} for 80");
}

#[tokio::test(start_paused = true)]
async fn a_stopping_engine_releases_its_leases_together() {
    const STACKS: usize = 60;
    let mut cluster = Cluster::new(|_, _, _| Ok(Answer::Step(Step::wait("building", Duration::from_mins(5)).id("x"))));
    let store = counting(&cluster.backends.clock);
    cluster.backends.store = Arc::new(store.clone());
    let engine = cluster.engine();
    for number in 0..STACKS {
        cluster.create_named(&format!("s{number}")).await;
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    engine.stop().await;
    let (leases, releases) = (store.census().await.expect("read").leases, store.releases());
    assert!(leases == 0 && releases <= 2, "{leases} leases left after {releases} releases");
}
