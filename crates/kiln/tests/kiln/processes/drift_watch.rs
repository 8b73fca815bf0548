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

/// The repairs of the stack that were executed.
fn updates(world: &World) -> usize {
    let operations = world.run(&["stack", "operation", "list", "web", "-f", "json"]).json();
    operations.as_array().expect("a list").iter().filter(|one| one["Action"] == "UPDATE").count()
}

/// Waits until a stack has been compared twice: the second comparison has begun after now.
fn until_compared_again(world: &World) {
    for _ in 0..2 {
        let before = until(world, "compared", |one| !one.is_null())["Checked At"].clone();
        until(world, "compared again", |one| one["Checked At"] != before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_repairs_nothing_in_maintenance_and_nothing_that_is_guarded() {
    let world = World::with("not-repaired", TEMPLATE).await;
    let maintenance = |word: &str| {
        world.folder.run(&["manage", "maintenance", word, "--config-file", &world.cluster.config()]).ok();
    };
    maintenance("on");
    maintenance("off");
    let schedule = || world.run(&["drift", "schedule", "set", "web", "--every", "1s", "--repair"]);
    // If the API has seen the maintenance, it sees its end some seconds later.
    let mut ran = schedule();
    for _ in 0..100 {
        if ran.code == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        ran = schedule();
    }
    ran.ok();
    until(&world, "compared", |one| one["Status"] == "IN_SYNC");

    maintenance("on");
    world.rename("network", "net", "theirs").await;
    until(&world, "found", |one| one["Drifted"] == "net.name");
    until_compared_again(&world);
    assert_eq!((updates(&world), world.drift(&[]).len()), (0, 1));
    maintenance("off");
    until(&world, "repaired", |one| one["Status"] == "IN_SYNC");
    assert_eq!((updates(&world), world.drift(&[]).len()), (1, 0));

    // The plan of a repair that a guard forbids waits for a user.
    world.run(&["stack", "protect", "web", "--resource", "net", "--from", "update"]).ok();
    world.rename("network", "net", "theirs").await;
    until(&world, "found", |one| one["Drifted"].as_str().is_some_and(|text| text.contains("no longer repaired")));
    assert_eq!((updates(&world), world.drift(&[]).len()), (1, 1));
    let plans = world.run(&["plan", "list", "-f", "json"]).json();
    let waiting = plans.as_array().unwrap().iter().filter(|plan| plan["Status"] == "READY").count();
    assert_eq!(waiting, 1, "a new plan takes the place of the earlier one: {plans}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_trust_a_stack_is_not_checked_until_a_user_updates_it() {
    let world = World::with("no-trust", TEMPLATE).await;
    world.run(&["drift", "schedule", "set", "web", "--every", "1s", "--repair"]).ok();
    until(&world, "compared", |one| one["Status"] == "IN_SYNC");
    for trust in &world.cluster.cloud.snapshot().objects["trusts"] {
        world.delete_trust(trust["id"].as_str().expect("an ID")).await;
    }
    world.rename("network", "net", "theirs").await;
    until(&world, "not compared", |one| one["Status"] == "NOT_CHECKED");
    until_compared_again(&world);
    assert_eq!(updates(&world), 0);
    // The update of a stack that has failed gives it another trust, if its own does not work.
    assert_ne!(world.run(&["stack", "check", "--wait", "web"]).code, 0);
    world.run(&["stack", "update", "--existing", "--wait", "web"]).ok();
    until(&world, "repaired", |one| one["Status"] == "IN_SYNC");
    assert_eq!(world.drift(&[]).len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_repairs_what_has_a_low_risk_and_stops_where_somebody_insists() {
    let world = World::with("self-repaired", TEMPLATE).await;
    let refused = world.run(&["drift", "schedule", "set", "web", "--every", "never", "--repair"]);
    assert!(refused.code == 1 && refused.err.contains("not compared cannot be repaired"), "{refused:?}");
    world.run(&["drift", "schedule", "set", "web", "--every", "1s", "--repair"]).ok();
    let listed = world.run(&["drift", "schedule", "list", "-f", "json"]).json();
    assert_eq!(listed[0]["Repair"], json!(true));
    until(&world, "compared", |one| one["Status"] == "IN_SYNC");
    world.cluster.cloud.journal().clear();
    for round in 1..=3 {
        world.rename("network", "net", "theirs").await;
        let end = Instant::now() + Duration::from_mins(2);
        while updates(&world) < round || !world.drift(&[]).is_empty() {
            assert!(Instant::now() < end, "repair {round}: {:?}", world.drift(&[]));
            std::thread::sleep(Duration::from_millis(500));
        }
    }
    // Those of the test, and the repairs.
    assert_eq!(world.cluster.cloud.journal().writes(), ["PUT network /networks/{id}"; 6]);

    // Somebody insists, and also changes a member of the group.
    world.rename("network", "net", "theirs").await;
    let found = until(&world, "left", |one| one["Drifted"].as_str().is_some_and(|text| text.contains("no longer")));
    let told = "net.name; no longer repaired after 3 times within a day: net.name";
    assert_eq!((&found["Status"], &found["Drifted"]), (&json!("DRIFTED"), &json!(told)));
    world.rename("network", "1", "theirs").await;
    let end = Instant::now() + Duration::from_mins(2);
    while updates(&world) < 4 || world.drift(&[]).len() != 1 {
        assert!(Instant::now() < end, "the member is repaired: {:?}", world.drift(&[]));
        std::thread::sleep(Duration::from_millis(500));
    }

    // What is deleted waits for a user as a plan, once.
    let plans = || world.run(&["plan", "list", "--stack", "web", "-f", "json"]).json();
    assert_eq!(plans().as_array().expect("a list").iter().filter(|plan| plan["Status"] == "READY").count(), 0);
    world.delete("network", "0").await;
    until(&world, "gone", |one| one["Drifted"].as_str().is_some_and(|text| text.contains("group/0 (deleted)")));
    let end = Instant::now() + Duration::from_mins(2);
    let ready = || plans().as_array().expect("a list").iter().filter(|plan| plan["Status"] == "READY").count();
    while ready() == 0 {
        assert!(Instant::now() < end, "{}", plans());
        std::thread::sleep(Duration::from_millis(500));
    }
    let checked = |one: &Value| one["Checked At"].clone();
    let before = checked(&until(&world, "compared", |one| !one.is_null()));
    until(&world, "compared again", |one| checked(one) != before);
    assert_eq!((ready(), updates(&world)), (1, 4));
}
