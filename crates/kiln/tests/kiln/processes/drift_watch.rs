//! Stacks that engines compare with their objects regularly.

use std::time::{Duration, Instant};

use kiln_testcloud::RecordedCall;
use serde_json::{Value, json};

use crate::processes::drift_plans::World;

const TEMPLATE: &str = "\
heat_template_version: 2018-08-31
resources:
  net: {type: OS::Neutron::Net, properties: {name: mine}}
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: OS::Neutron::Net, properties: {name: 'member-%index%'}}}
";

/// Waits until the only watched stack is as expected.
fn until(world: &World, what: &str, expected: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + Duration::from_mins(2);
    loop {
        let listed = world.run(&["drift", "list", "-f", "json"]).json();
        if expected(&listed[0]) {
            return listed[0].clone();
        }
        assert!(Instant::now() < end, "{what}: {listed}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_finds_drift_and_its_end_and_changes_nothing() {
    let world = World::with("watched", TEMPLATE).await;
    assert_eq!(world.run(&["drift", "list", "-f", "json"]).json(), json!([]));
    world.run(&["drift", "schedule", "set", "web", "--every", "1s"]).ok();
    world.cluster.cloud.journal().clear();
    let found = until(&world, "compared", |one| one["Status"] == "IN_SYNC");
    assert_eq!((&found["Stack Name"], &found["Drifted"]), (&json!("web"), &json!("")));

    world.rename("network", "net", "theirs").await;
    world.rename("network", "1", "theirs").await;
    let found = until(&world, "found", |one| one["Drifted"].as_str().is_some_and(|text| text.contains("group/1")));
    assert_eq!((&found["Status"], &found["Drifted"]), (&json!("DRIFTED"), &json!("group/1.name; net.name")));
    assert_eq!(world.run(&["drift", "list", "--status", "in-sync", "-f", "json"]).json(), json!([]));
    let sent = world.cluster.cloud.journal().list();
    let changes = |call: &&RecordedCall| {
        let is_ours = !call.call().contains("/networks/") || !call.method.eq_ignore_ascii_case("PUT");
        !call.method.eq_ignore_ascii_case("GET") && !call.call().contains("/auth/") && is_ours
    };
    let changes: Vec<String> = sent.iter().filter(changes).map(RecordedCall::call).collect();
    assert_eq!(changes, Vec::<String>::new(), "only the test has changed networks");

    let printed = world.run(&["stack", "drift", "web", "--repair"]).ok();
    world.apply(&printed).await;
    until(&world, "repaired", |one| one["Status"] == "IN_SYNC");

    // Of the schedules, the one of the stack has the say.
    world.run(&["drift", "schedule", "set", "--every", "1d"]).ok();
    world.run(&["drift", "schedule", "set", "web", "--every", "never"]).ok();
    let listed = world.run(&["drift", "schedule", "list", "-f", "json"]).json();
    let periods: Vec<&Value> = listed.as_array().expect("a list").iter().map(|one| &one["Every"]).collect();
    assert_eq!(periods, [&json!("1d"), &json!("never")]);
    until(&world, "no longer watched", Value::is_null);
    world.run(&["drift", "schedule", "remove", "web"]).ok();
    let removed = world.run(&["drift", "schedule", "remove", "web"]);
    assert!(removed.code == 1 && removed.err.contains("web"), "{removed:?}");
    until(&world, "as its project", |one| one["Stack Name"] == "web");
}
