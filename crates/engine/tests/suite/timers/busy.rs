//! Busy objects: the step is repeated until the object may be changed, or until the stack may not wait any longer.

use std::time::Duration;

use kiln_resource::{Action, FailureKind, Status, Step};

use super::cluster::{Answer, Call, Cluster, done};
use super::{CREATE, failure, near};

#[tokio::test(start_paused = true)]
async fn a_busy_object_is_asked_again_without_counting_or_searching() {
    // More refusals than any other failure may have.
    let cluster = Cluster::new(|number, call, _| match call {
        _ if number < 40 => Err(failure(FailureKind::Busy)),
        Call::Start(Action::Create) => Ok(Answer::Step(Step::done().id("object"))),
        other => panic!("{other:?}"),
    });
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    let (stack, at) = cluster.settled(id).await;
    assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
    assert_eq!((cluster.driver.count(&CREATE), cluster.driver.count(&Call::Find)), (41, 0));
    // The delays do not grow beyond 4 s.
    assert!(at > 40.0 && at < 165.0, "{at}");
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_delete_ends_the_wait_for_a_busy_object() {
    let cluster = Cluster::new(|_, call, _| match call {
        Call::Start(Action::Create) => Err(failure(FailureKind::Busy)),
        _ => done(),
    });
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    cluster.ask(id, Action::Delete).await;
    let (stack, at) = cluster.settled(id).await;
    assert!(stack.state.is_complete(Action::Delete) && at < 66.0, "{at} {stack:?}");
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_ends_the_wait_for_a_busy_object() {
    let cluster = Cluster::new(|_, _, _| Err(failure(FailureKind::Busy)));
    let engine = cluster.engine();
    let id = cluster.create(Some(2)).await;
    let (stack, at) = cluster.settled(id).await;
    assert_eq!((stack.state.status, stack.reason.as_str()), (Status::Failed, "Timed out"));
    assert!(near(at, 120.0), "{at}");
    engine.kill();
}
