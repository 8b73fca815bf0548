//! What a row says while its operation waits longer than usual.

use std::time::Duration;

use kiln_resource::{Action, Failure, FailureKind, Status, Step};
use kiln_store::StackId;

use super::cluster::{Answer, Call, Cluster};
use super::failure;

const USUAL: &str = "state changed";
const REFUSED: &str = "trying again after Broken: the cloud has a bad day";

async fn reason(cluster: &Cluster, id: StackId) -> String {
    cluster.rows(id).await[0].reason.clone()
}

#[tokio::test(start_paused = true)]
async fn a_row_says_once_why_its_operation_is_repeated_and_what_it_waits_for() {
    let building = |seconds| Step::wait("building", Duration::from_secs(seconds)).waits_for("the status ACTIVE");
    let cluster = Cluster::new(move |number, call, _| match call {
        // After at most 1, 3 and 7 seconds.
        _ if number < 3 => Err(failure(FailureKind::NotSent)),
        Call::Start(_) => Ok(Answer::Step(building(5).id("object"))),
        _ if number < 20 => Ok(Answer::Step(building(5))),
        _ => Ok(Answer::Step(Step::done())),
    });
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(reason(&cluster, id).await, USUAL, "the first pause is short");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let told = cluster.rows(id).await;
    assert_eq!(told[0].reason, REFUSED);
    tokio::time::sleep(Duration::from_millis(1_900)).await;
    assert_eq!((cluster.driver.seen().len(), cluster.rows(id).await), (3, told), "the same is not stored again");
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(reason(&cluster, id).await, USUAL, "the service answers");
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(reason(&cluster, id).await, "waiting for the status ACTIVE");
    let (stack, _) = cluster.settled(id).await;
    assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
    assert_eq!(reason(&cluster, id).await, USUAL);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_row_of_a_repeated_create_says_why_to_its_end() {
    let cluster = Cluster::new(|number, call, _| match call {
        Call::Start(Action::Create) => Ok(Answer::Step(Step::wait("b", Duration::from_secs(3)).id("object"))),
        Call::Poll(Action::Create) if number < 2 => Err(Failure::in_error("ERROR", "no host")),
        _ => Ok(Answer::Step(Step::done())),
    });
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(reason(&cluster, id).await, USUAL);
    tokio::time::sleep(Duration::from_secs(4)).await;
    let told = reason(&cluster, id).await;
    assert!(told.starts_with("trying again after ") && told.ends_with("due to \"no host\""), "{told}");
    let (stack, _) = cluster.settled(id).await;
    assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
    assert_eq!(reason(&cluster, id).await, USUAL);
    engine.kill();
}
