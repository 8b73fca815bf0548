//! An engine begins with the blueprint that the request was accepted with, if that was in its process.

use std::time::Duration;

use kiln_plan::{Blueprint, Nesting};
use kiln_resource::StackId;
use kiln_stack::load;
use kiln_store::NewStack;
use kiln_value::{StackIdentity, Value};

use crate::groups::bench::{Bench, sources};

fn template(word: &str) -> String {
    format!(
        "{{heat_template_version: 2018-08-31, resources: {{a: {{type: OS::Heat::Value, properties: {{value: {word}}}}}}}}}"
    )
}

/// Hands over another blueprint than the one that is stored, to tell them apart.
fn hand_over(bench: &Bench, id: StackId) {
    let identity = StackIdentity::new("demo", "s", id.to_string()).expect("an identity");
    let types = &bench.backends.resource_types;
    let handed = Blueprint::build(sources(&template("handed")), types, Some(identity), Nesting::default());
    let stored = load::texts(&sources(&template("stored"))).digests();
    let now = bench.backends.clock.monotonic();
    bench.backends.caches.handover.put(id, stored, handed.expect("a blueprint"), now);
}

async fn created(bench: &Bench, id: StackId) -> Value {
    let texts = load::texts(&sources(&template("stored")));
    let new = NewStack::new(id, "s".to_owned(), "demo".to_owned(), texts, bench.backends.clock.now());
    bench.backends.store.create_stack(new).await.expect("stored");
    bench.completed(id).await;
    bench.row(id, "a").await.properties().get("value").cloned().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn an_engine_begins_with_the_accepted_blueprint() {
    let bench = Bench::new();
    let id = StackId(bench.backends.chance.uuid());
    hand_over(&bench, id);
    assert_eq!(bench.backends.caches.handover.size(), (0, 0), "there is no engine that could take it");
    let _engine = bench.engine();
    tokio::task::yield_now().await;
    hand_over(&bench, id);
    assert_eq!(bench.backends.caches.handover.size().0, 1);
    assert_eq!(created(&bench, id).await, "handed".into());
    assert_eq!(bench.backends.caches.handover.size(), (0, 0), "it is not kept");
}

#[tokio::test(start_paused = true)]
async fn an_engine_of_another_process_builds_its_own() {
    let bench = Bench::new();
    let _engine = bench.engine();
    assert_eq!(created(&bench, StackId(bench.backends.chance.uuid())).await, "stored".into());
}

/// The stack has got another engine, or the request failed after all.
#[tokio::test(start_paused = true)]
async fn a_blueprint_that_no_engine_takes_is_dropped() {
    let bench = Bench::new();
    let _engine = bench.engine();
    tokio::task::yield_now().await;
    hand_over(&bench, StackId(bench.backends.chance.uuid()));
    assert_eq!(bench.backends.caches.handover.size().0, 1);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(bench.backends.caches.handover.size(), (0, 0));
}
