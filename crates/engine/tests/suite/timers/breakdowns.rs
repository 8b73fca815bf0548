//! Panics, and requests that cannot go on: every operation ends, and no object is forgotten.

use std::time::Duration;

use kiln_resource::{Action, Step};

use super::cluster::{Cluster, PANICS_FIRST, PANICS_LATER, done};
use super::{answered_late, near};

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_task_fails_the_resource_at_once() {
    let cluster = Cluster::new(|_, _, _| done());
    let engine = cluster.engine();
    let id = cluster.create_group(PANICS_FIRST).await;
    let (stack, at) = cluster.settled(id).await;
    assert_eq!(stack.state.to_string(), "CREATE_FAILED");
    assert!(stack.reason.contains("bug in the driver") && near(at, 0.0), "{at}: {}", stack.reason);
    assert_eq!(cluster.rows(id).await[0].state.to_string(), "CREATE_FAILED");
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_actor_ends_its_operations() {
    let cluster = Cluster::new(|_, _, _| done());
    let engine = cluster.engine();
    let id = cluster.create_group(PANICS_LATER).await;
    let (stack, _) = cluster.settled(id).await;
    assert_eq!(stack.state.to_string(), "CREATE_FAILED");
    assert!(stack.reason.starts_with("Internal error: "), "{}", stack.reason);
    assert_eq!(cluster.rows(id).await[0].state.to_string(), "CREATE_FAILED");
    let events = cluster.events(id).await;
    assert!(events.last().is_some_and(kiln_store::Event::is_of_stack), "a client that waits for it: {events:?}");
    cluster.ask(id, Action::Delete).await;
    assert!(cluster.settled(id).await.0.state.is_complete(Action::Delete));
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn an_update_that_cannot_begin_waits_for_the_call_of_the_create() {
    let cluster = answered_late(Step::done());
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    cluster.update_to(id, "Test::Missing", "second").await;
    let (stack, at) = cluster.settled(id).await;
    assert_eq!(stack.state.to_string(), "UPDATE_FAILED");
    assert!(near(at, 20.0), "{at}");
    let row = &cluster.rows(id).await[0];
    assert_eq!((row.state.to_string().as_str(), row.physical_id.as_deref()), ("CREATE_COMPLETE", Some("x")));
    cluster.ask(id, Action::Delete).await;
    assert!(cluster.settled(id).await.0.state.is_complete(Action::Delete));
    engine.kill();
}
