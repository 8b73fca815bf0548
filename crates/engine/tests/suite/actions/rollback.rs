//! Rollbacks: a rollback is a request of its own.

use kiln_plan::Sources;
use kiln_resource::{Action, State, Status};
use kiln_stack::load;
use kiln_store::{Details, Stack, StackRequest};
use kiln_value::value;

use super::bench::{Bench, asked, sources};

fn one() -> Sources {
    sources(value!({"thing": {"type": "Test::Thing", "properties": {"word": "one"}}}), &value!({}), &[])
}

/// An update of the thing, and then a create that fails.
fn failing(disable_rollback: bool) -> StackRequest {
    let resources = value!({
        "thing": {"type": "Test::Thing", "properties": {"word": "two"}},
        "late": {"type": "Test::Thing", "depends_on": "thing", "properties": {"word": "fail"}},
    });
    StackRequest {
        desired: Some(load::texts(&sources(resources, &value!({}), &[]))),
        disable_rollback: Some(disable_rollback),
        ..asked(Action::Update)
    }
}

/// The stack is as it was before the update.
async fn is_back(bench: &Bench, made: &Stack, back: &Stack) {
    assert_eq!(back.state, State::new(Action::Rollback, Status::Complete), "{}", back.reason);
    assert_eq!((&back.desired, back.settled), (&made.desired, back.generation));
    let rows = bench.resources(made.id).await;
    assert_eq!(rows.keys().collect::<Vec<_>>(), ["thing"]);
    assert_eq!(rows["thing"].properties().get("word").and_then(kiln_value::Value::as_str), Some("one"));
    assert_eq!(rows["thing"].physical_id.as_deref(), Some("thing-1"));
}

#[tokio::test]
async fn the_end_of_an_update_and_its_rollback_are_requested_in_one_commit() {
    let bench = Bench::new().await;
    let made = bench.create(&one()).await;
    // No client sees a stack without a request in between.
    let back = bench.request(made.id, failing(false)).await;
    is_back(&bench, &made, &back).await;
    assert_eq!(back.generation, 3);
    let events: Vec<String> = bench.events(made.id).await;
    let failed = events.iter().position(|event| event.starts_with("<stack> UPDATE_FAILED")).expect("an end");
    assert_eq!(events[failed + 1], "<stack> ROLLBACK_IN_PROGRESS Stack ROLLBACK started");
    assert_eq!(bench.resources(made.id).await["thing"].generation, 3, "what the rollback has changed is its own");
}

#[tokio::test]
async fn a_rollback_of_the_release_before_gets_a_number_of_its_own() {
    let bench = Bench::new().await;
    let made = bench.create(&one()).await;
    let failed = bench.request(made.id, failing(true)).await;
    assert_eq!(failed.state, State::new(Action::Update, Status::Failed));
    let former = StackRequest { details: Details::default(), ..asked(Action::Rollback) };
    let back = bench.request(made.id, former).await;
    is_back(&bench, &made, &back).await;
    assert_eq!((back.generation, back.details.own_number), (failed.generation + 2, true));
}
