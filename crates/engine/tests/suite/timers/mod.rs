//! Every time limit of an engine, with paused time: polls, back-offs, timeouts, leases, drains, delays.

mod admission;
mod breakdowns;
mod busy;
mod claims;
pub(crate) mod cluster;
mod told;
mod waits;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kiln_resource::{Action, Failure, FailureKind, Found, MessageId, State, Status, Step};
use kiln_store::{
    Cancel, EngineId, EventQuery, HealthMark, MemoryStore, Message, MessageBody, MessageKind, RefusedSignal, Silent,
};
use kiln_value::{Class, Value, value};

use self::cluster::{Answer, Call, Cluster, done, waiting};

const CREATE: Call = Call::Start(Action::Create);
const POLL: Call = Call::Poll(Action::Create);

fn failure(kind: FailureKind) -> Failure {
    Failure::new(kind, Class::of("Broken"), "the cloud has a bad day")
}

fn near(seconds: f64, wanted: f64) -> bool {
    (seconds - wanted).abs() < 0.5
}

#[tokio::test(start_paused = true)]
async fn polls_come_when_the_driver_wants_them_and_change_nothing_in_the_store() {
    let cluster = Cluster::new(|number, call, _| match call {
        Call::Start(_) => Ok(Answer::Step(Step::wait("building", Duration::from_secs(5)).id("object"))),
        _ if number < 8 => waiting(5),
        _ => Ok(Answer::Step(Step::done())),
    });
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    tokio::time::sleep(Duration::from_secs(12)).await;
    let before = cluster.rows(id).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(cluster.rows(id).await, before, "a poll that finds nothing new stores nothing");
    let (stack, at) = cluster.settled(id).await;
    assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
    assert_eq!(cluster.driver.count(&POLL), 8);
    assert!(near(at, 40.0), "{at}: {:?}", cluster.driver.seen());
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_delete_ends_the_sleep_of_a_build_at_once() {
    let cluster = Cluster::new(|_, call, _| match call {
        Call::Start(Action::Create) => Ok(Answer::Step(Step::wait("building", Duration::from_secs(50)).id("object"))),
        Call::Start(Action::Delete) => Ok(Answer::Step(Step::done())),
        _ => waiting(50),
    });
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    cluster.ask(id, Action::Delete).await;
    let (stack, at) = cluster.settled(id).await;
    assert!(stack.state.is_complete(Action::Delete) && near(at, 10.0), "{at} {stack:?}");
    engine.kill();
}

/// The response to the create, with the ID of the object, arrives 20 s late; a delete needs the ID.
fn answered_late(step: Step) -> Cluster {
    Cluster::new(move |_, call, facts| match call {
        Call::Start(Action::Create) => Ok(Answer::After(Duration::from_secs(20), step.clone().id("x"))),
        Call::Start(Action::Delete) => {
            assert_eq!(facts.physical_id.as_deref(), Some("x"));
            Ok(Answer::Step(Step::done()))
        }
        other => panic!("{other:?}"),
    })
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_call_is_remembered_not_dropped() {
    // The delete was requested meanwhile and needs the ID.
    let cluster = answered_late(Step::wait("b", Duration::ZERO));
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    cluster.ask(id, Action::Delete).await;
    let (stack, at) = cluster.settled(id).await;
    assert!(stack.state.is_complete(Action::Delete) && near(at, 20.0), "{at} {stack:?}");
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn an_action_ends_with_its_time_limit() {
    for (timeout, seconds) in [(Some(1), 60.0), (None, 3600.0)] {
        let cluster = Cluster::new(|_, _, _| waiting(7));
        let engine = cluster.engine();
        let id = cluster.create(timeout).await;
        let (stack, at) = cluster.settled(id).await;
        assert_eq!((stack.state.to_string().as_str(), stack.reason.as_str()), ("CREATE_FAILED", "Timed out"));
        assert!(near(at, seconds), "{at}");
        let row = &cluster.rows(id).await[0];
        let aborted = "ResourceFailure: resources.one: CREATE aborted (user triggered cancel); it was waiting for ";
        assert!(row.reason.starts_with(aborted), "{}", row.reason);
        engine.kill();
    }
}

#[tokio::test(start_paused = true)]
async fn a_delete_has_a_time_limit_too() {
    let cluster = Cluster::new(|_, call, _| match call {
        Call::Start(Action::Create) => done(),
        _ => waiting(7),
    });
    let engine = cluster.engine();
    let id = cluster.create(Some(2)).await;
    cluster.settled(id).await;
    cluster.ask(id, Action::Delete).await;
    let (stack, at) = cluster.settled(id).await;
    assert_eq!((stack.state.to_string().as_str(), stack.reason.as_str()), ("DELETE_FAILED", "Timed out"));
    assert!(near(at, 120.0), "{at}");
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_beyond_all_time_is_none() {
    let cluster = Cluster::new(|_, _, _| done());
    let engine = cluster.engine();
    for minutes in [1_000_000_000_000, i64::MAX] {
        let id = cluster.create(Some(minutes)).await;
        let (stack, _) = cluster.settled(id).await;
        assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
        cluster.ask(id, Action::Delete).await;
        cluster.settled(id).await;
    }
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_is_repeated_with_growing_waits() {
    let cluster = Cluster::new(|number, _, _| if number < 4 { Err(failure(FailureKind::NotSent)) } else { done() });
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    let (stack, _) = cluster.settled(id).await;
    assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
    let times: Vec<f64> = cluster.driver.seen().into_iter().map(|(at, _)| at).collect();
    for (gap, longest) in times.windows(2).map(|pair| pair[1] - pair[0]).zip([1.0, 2.0, 4.0, 8.0]) {
        assert!(gap <= longest + 0.1 && gap >= longest / 2.0 - 0.1, "{times:?}");
    }
    assert_eq!(cluster.driver.count(&Call::Find), 0);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_service_that_stays_away_fails_the_resource_in_the_end() {
    let cluster = Cluster::new(|_, _, _| Err(failure(FailureKind::NotSent)));
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    let (stack, _) = cluster.settled(id).await;
    assert_eq!(stack.reason, "Resource CREATE failed: Broken: resources.one: the cloud has a bad day");
    assert_eq!(cluster.driver.count(&CREATE), 7);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_service_may_say_when_to_come_again() {
    let cluster = Cluster::new(|number, _, _| {
        let mut busy = failure(FailureKind::OverLimit);
        busy.retry_after = Some(Duration::from_secs(25));
        if number == 0 { Err(busy) } else { done() }
    });
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    let (_, at) = cluster.settled(id).await;
    assert!(near(at, 25.0), "{at}");
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_lost_create_is_repeated_only_when_no_call_can_be_under_way() {
    for (kind, seconds) in [(FailureKind::Unavailable, 75.0), (FailureKind::ServerError, 10.0)] {
        let cluster = Cluster::new(move |number, call, _| match call {
            Call::Find => Ok(Answer::Found(Found::NotMade)),
            _ if number == 0 => Err(failure(kind)),
            _ => done(),
        });
        let engine = cluster.engine();
        let id = cluster.create(None).await;
        let (stack, at) = cluster.settled(id).await;
        assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
        assert_eq!(cluster.driver.count(&CREATE), 2);
        assert!(at >= seconds && at < seconds + 1.0, "{kind:?} {at}: {:?}", cluster.driver.seen());
        let seen = cluster.driver.seen();
        assert!(seen[1].1 == Call::Find && seen[1].0 >= 0.5, "first it waits, then it looks: {seen:?}");
        engine.kill();
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_lost_create_made_is_adopted_as_soon_as_it_is_seen() {
    // Listed 20 s after its creation.
    let start = tokio::time::Instant::now();
    let cluster = Cluster::new(move |_, call, _| match call {
        Call::Find if start.elapsed() > Duration::from_secs(20) => {
            Ok(Answer::Found(Found::Made(Step::done().id("it"))))
        }
        Call::Find => Ok(Answer::Found(Found::NotMade)),
        _ => Err(failure(FailureKind::Unavailable)),
    });
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    let (stack, at) = cluster.settled(id).await;
    assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
    assert_eq!((cluster.driver.count(&CREATE), cluster.rows(id).await[0].physical_id.as_deref()), (1, Some("it")));
    assert!(at > 20.0 && at < 52.0, "{at}");
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_told_is_not_created_again_and_a_delete_looks_once_more() {
    let cluster = Cluster::new(|number, call, facts| match call {
        Call::Start(Action::Create) => Err(failure(FailureKind::Unavailable)),
        Call::Find if number < 2 => Ok(Answer::Found(Found::CannotTell("it has no mark".to_owned()))),
        Call::Find => Ok(Answer::Found(Found::Made(Step::done().id("left")))),
        Call::Start(Action::Delete) => {
            assert_eq!(facts.physical_id.as_deref(), Some("left"));
            Ok(Answer::Step(Step::done()))
        }
        other => panic!("{other:?}"),
    });
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    let (stack, at) = cluster.settled(id).await;
    let text = "It is unknown whether the service created the object: it has no mark.";
    assert_eq!(stack.reason, format!("Resource CREATE failed: CreateLost: resources.one: {text}"));
    assert!(at < 2.0 && cluster.driver.count(&CREATE) == 1, "{at}");
    tokio::time::sleep(Duration::from_mins(1)).await;
    // The script depends on the number of the call: one more search, then the delete.
    cluster.ask(id, Action::Delete).await;
    let (stack, _) = cluster.settled(id).await;
    assert!(stack.state.is_complete(Action::Delete), "{stack:?} {:?}", cluster.driver.seen());
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_failed_build_is_deleted_and_tried_again_with_a_new_mark() {
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&tokens);
    let cluster = Cluster::new(move |_, call, facts| match call {
        Call::Start(Action::Create) => {
            noted.lock().expect("whole").push(facts.attempt.token.clone());
            Ok(Answer::Step(Step::wait("b", Duration::from_secs(1)).id("object")))
        }
        Call::Poll(Action::Create) => Err(Failure::in_error("ERROR", "no host")),
        Call::Start(Action::Delete) => Ok(Answer::Step(Step::done())),
        other => panic!("{other:?}"),
    });
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    let (stack, _) = cluster.settled(id).await;
    assert!(stack.reason.ends_with("resources.one: Went to status ERROR due to \"no host\""), "{}", stack.reason);
    let tokens = tokens.lock().expect("whole").clone();
    let distinct: std::collections::BTreeSet<&String> = tokens.iter().collect();
    assert_eq!((tokens.len(), distinct.len()), (6, 6));
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_dead_engines_stack_is_taken_over_when_its_lease_has_ended() {
    // The first engine fails during the call; nothing was created.
    let cluster = Cluster::new(|number, call, _| match call {
        Call::Find => Ok(Answer::Found(Found::NotMade)),
        _ if number == 0 => Ok(Answer::After(Duration::from_hours(1), Step::done())),
        _ => done(),
    });
    let first = cluster.engine();
    let id = cluster.create(None).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    first.kill();
    let second = cluster.engine();
    let (stack, at) = cluster.settled(id).await;
    assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
    let seen = cluster.driver.seen();
    let looked = seen.iter().find(|(_, call)| *call == Call::Find).expect("looked for").0;
    // It was renewed at most 5 s before the failure; the lease lasts 15 s, a call 75 s.
    assert!((10.0..18.5).contains(&looked), "{seen:?}");
    assert!((85.0..95.0).contains(&at), "{at}: {seen:?}");
    second.kill();
}

#[tokio::test(start_paused = true)]
async fn engines_that_fail_faster_than_a_call_ends_do_not_restart_the_wait_for_it() {
    let hang = Duration::from_hours(1);
    let cluster = Cluster::new(move |_, call, _| match call {
        Call::Start(_) => Ok(Answer::After(hang, Step::done())),
        _ => Ok(Answer::Found(Found::NotMade)),
    });
    let id = cluster.create(None).await;
    // Each engine gets the stack 10 to 15 s after the failure of the one before, and works on it for the other 15 s.
    for _ in 0..12 {
        let engine = cluster.engine();
        tokio::time::sleep(Duration::from_secs(30)).await;
        engine.kill();
    }
    let calls: Vec<f64> =
        cluster.driver.seen().into_iter().filter(|(_, call)| *call == CREATE).map(|(at, _)| at).collect();
    // A call may have an effect for 75 s after the lease, which ends 10 to 15 s after the failure: until 115 to 120 s. Of these,
    // each engine that takes over knows the 15 s in which the one before was silent, and most of what that one has waited. The
    // engine that has waited long enough repeats it, at most 15 s before it fails itself.
    let [first, second, third] = calls[..] else { panic!("{:?}", cluster.driver.seen()) };
    assert!(first < 1.0 && (120.0..151.0).contains(&second), "{calls:?}");
    assert!((105.0..136.0).contains(&(third - second)), "{calls:?}");
    let row = &cluster.rows(id).await[0];
    assert_eq!(row.state, State::new(Action::Create, Status::InProgress));
}

#[tokio::test(start_paused = true)]
async fn a_stopping_engine_lets_its_calls_end_and_the_next_goes_on_at_once() {
    let cluster = Cluster::new(|_, call, _| match call {
        Call::Start(Action::Create) => {
            Ok(Answer::After(Duration::from_secs(20), Step::wait("b", Duration::ZERO).id("x")))
        }
        Call::Poll(_) => Ok(Answer::Step(Step::done())),
        other => panic!("{other:?}"),
    });
    let first = cluster.engine();
    let id = cluster.create(None).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let took = first.stop().await.as_secs_f64();
    assert!(near(took, 15.0), "{took}");
    assert_eq!(cluster.rows(id).await[0].physical_id.as_deref(), Some("x"), "the answer is stored");
    let second = cluster.engine();
    let (stack, at) = cluster.settled(id).await;
    assert_eq!((stack.state.status, cluster.driver.count(&Call::Find)), (Status::Complete, 0));
    assert!(near(at, 20.0), "{at}");
    second.kill();
}

#[tokio::test(start_paused = true)]
async fn a_stopping_engine_does_not_wait_for_ever() {
    let cluster = Cluster::new(|number, call, _| match call {
        Call::Find => Ok(Answer::Found(Found::Made(Step::done().id("x")))),
        _ if number == 0 => Ok(Answer::After(Duration::from_hours(9), Step::done())),
        _ => done(),
    });
    let first = cluster.engine();
    let id = cluster.create(None).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let took = first.stop().await.as_secs_f64();
    assert!(near(took, 75.0), "{took}");
    // The outcome of the call is unknown: the lease expires, and the object is looked for.
    let second = cluster.engine();
    let (stack, at) = cluster.settled(id).await;
    assert_eq!((stack.state.status, cluster.driver.count(&CREATE)), (Status::Complete, 1));
    assert!(at > 76.0 && at < 92.5, "{at}");
    second.kill();
}

#[tokio::test(start_paused = true)]
async fn without_a_renewed_lease_no_call_is_made() {
    // The runtime of the heartbeat is not running: nothing is renewed.
    let cluster = Cluster::new(|_, call, _| match call {
        Call::Start(_) => Ok(Answer::Step(Step::wait("b", Duration::from_secs(2)).id("x"))),
        _ => waiting(2),
    });
    let idle = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let engine = cluster.engine_with_heartbeat_on(idle.handle().clone());
    cluster.create(Some(600)).await;
    tokio::time::sleep(Duration::from_secs(14)).await;
    let calls = cluster.driver.seen();
    // A tenth of the lease of 15 s is reserved.
    assert!(calls.len() > 4 && calls.iter().all(|(at, _)| *at <= 13.5), "{calls:?}");
    // Another engine finds it silent, and continues.
    let other = cluster.engine();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(cluster.driver.seen().last().is_some_and(|(at, _)| *at > 15.0));
    engine.kill();
    other.kill();
    idle.shutdown_background();
}

#[tokio::test(start_paused = true)]
async fn nested_templates_are_asked_for_one_after_another() {
    let words = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&words);
    let cluster = Cluster::new(move |_, call, facts| {
        if matches!(call, Call::Start(Action::Create | Action::Update)) {
            noted.lock().expect("whole").push(facts.property("word").as_str().unwrap_or_default().to_owned());
        }
        Ok(Answer::Step(Step::done().id("object")))
    });
    let first = cluster.engine();
    let id = cluster.create_of("Test::InSteps", None).await;
    // The engine fails during the first delay, and the next one stops during the second.
    tokio::time::sleep(Duration::from_secs(10)).await;
    first.kill();
    let second = cluster.engine();
    tokio::time::sleep(Duration::from_secs(70)).await;
    second.stop().await;
    let third = cluster.engine();
    let (stack, at) = cluster.settled(id).await;
    assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
    assert_eq!(*words.lock().expect("whole"), ["first0", "first1", "first2"]);
    assert!((120.0..125.0).contains(&at), "{at}");
    third.kill();
}

pub(crate) fn message(cluster: &Cluster, stack: kiln_resource::StackId, body: MessageBody) -> Message {
    let now = cluster.backends.clock.now();
    let id = MessageId(cluster.backends.chance.uuid());
    Message { id, stack, resource: Some("one".to_owned()), body, due: now, sent: now }
}

#[tokio::test(start_paused = true)]
async fn a_message_wakes_a_settled_stack_and_is_handled_once() {
    let cluster = Cluster::new(|_, call, _| match call {
        Call::Receive(body) => Ok(Answer::Step(Step::done().data("heard", body.clone()))),
        _ => done(),
    });
    let first = cluster.engine();
    let id = cluster.create(None).await;
    cluster.settled(id).await;
    let store = &cluster.backends.store;
    for n in 0..3 {
        store.send(&message(&cluster, id, MessageBody::Signal(value!({"n": n})))).await.expect("sent");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let heard = |n: i64| (0..n).map(|n| Call::Receive(value!({"n": n}))).collect::<Vec<_>>();
    let received: Vec<Call> = cluster
        .driver
        .seen()
        .into_iter()
        .map(|(_, call)| call)
        .filter(|call| matches!(call, Call::Receive(_)))
        .collect();
    assert_eq!(received, heard(3), "in order, once");
    assert_eq!(cluster.rows(id).await[0].data.get("heard"), Some(&value!({"n": 2})));
    first.kill();
    let second = cluster.engine();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(cluster.driver.seen().iter().filter(|(_, call)| matches!(call, Call::Receive(_))).count(), 3);
    let events = store.events(&EventQuery { stacks: vec![id], ..EventQuery::default() }).await.expect("read");
    assert_eq!(events.iter().filter(|event| event.action == "SIGNAL").count(), 3);
    second.kill();
}

/// A message to a resource that is being created, or will be, waits for it; one that the API has refused is only an
/// event.
#[tokio::test(start_paused = true)]
async fn a_message_waits_for_the_create() {
    let cluster = Cluster::new(|_, call, _| match call {
        Call::Start(_) => waiting(30),
        Call::Poll(_) => done(),
        Call::Receive(body) => Ok(Answer::Step(Step::done().data("heard", body.clone()))),
        Call::Find => Ok(Answer::Found(Found::NotMade)),
    });
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let store = &cluster.backends.store;
    store.send(&message(&cluster, id, MessageBody::Signal(value!({"n": 1})))).await.expect("sent");
    let refused = RefusedSignal { action: "SUSPEND".to_owned() };
    store.send(&message(&cluster, id, MessageBody::RefusedSignal(refused))).await.expect("sent");
    let (_, at) = cluster.settled(id).await;
    assert!(near(at, 30.0), "{at}");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let calls: Vec<Call> = cluster.driver.seen().into_iter().map(|(_, call)| call).collect();
    assert_eq!(calls, [CREATE, POLL, Call::Receive(value!({"n": 1}))]);
    let events = store.events(&EventQuery { stacks: vec![id], ..EventQuery::default() }).await.expect("read");
    let of = |action: &str, reason: &str| events.iter().filter(|e| e.action == action && e.reason == reason).count();
    // The event of the refusal has the state of the resource.
    assert_eq!((of("SIGNAL", "Unknown"), of("CREATE", "Cannot signal resource during SUSPEND")), (1, 1));
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_mark_of_health_changes_the_state_and_a_cancel_ends_a_request() {
    let building = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&building);
    let cluster = Cluster::new(move |_, call, _| match call {
        Call::Start(Action::Create) if counted.fetch_add(1, Ordering::SeqCst) > 0 => waiting(3),
        Call::Start(_) => done(),
        _ => waiting(3),
    });
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    cluster.settled(id).await;
    let store = &cluster.backends.store;
    let body = HealthMark { unhealthy: true, reason: Some("it smells".to_owned()) };
    store.send(&message(&cluster, id, MessageBody::MarkUnhealthy(body))).await.expect("sent");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let row = cluster.rows(id).await.remove(0);
    assert_eq!((row.state, row.reason.as_str()), (State::new(Action::Check, Status::Failed), "it smells"));
    cluster.ask(id, Action::Delete).await;
    cluster.settled(id).await;

    let id = cluster.create(None).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let cancel = Message {
        resource: None,
        ..message(&cluster, id, MessageBody::Cancel(Cancel { interrupt: true, ..Cancel::default() }))
    };
    store.send(&cancel).await.expect("sent");
    let (stack, _) = cluster.settled(id).await;
    assert_eq!((stack.state.to_string().as_str(), stack.reason.as_str()), ("CREATE_FAILED", "Stack CREATE cancelled"));
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_comes_late_ends_no_later_request_to_a_nested_stack() {
    let cluster = Cluster::new(|_, call, _| match call {
        Call::Start(Action::Create) | Call::Poll(Action::Delete) => done(),
        _ => waiting(5),
    });
    let first = cluster.engine();
    let id = cluster.create_of("Test::InSteps", None).await;
    // The engine fails in the second step, an update of the nested stack.
    tokio::time::sleep(Duration::from_secs(81)).await;
    first.kill();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let store = &cluster.backends.store;
    let child = store.children(id).await.expect("read").remove(0).id;
    // Another engine has the nested stack, and does nothing.
    let (engine, seen) = store.engines().await.map(|engines| (engines[0].id, engines[0].seen)).expect("read");
    store
        .forget_engine(&Silent { engine, seen, silence: Duration::ZERO, idle: Duration::ZERO })
        .await
        .expect("forgotten");
    let leases = store
        .claim(EngineId(cluster.backends.chance.uuid()), Duration::from_secs(30), &[child], 1)
        .await
        .expect("claimed");
    assert_eq!(leases.len(), 1);
    let second = cluster.engine();
    tokio::time::sleep(Duration::from_secs(2)).await;
    cluster.ask(id, Action::Delete).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let inbox = store.inbox(child, cluster.backends.clock.now()).await.expect("read");
    assert_eq!(inbox.iter().map(|message| message.body.kind()).collect::<Vec<_>>(), [MessageKind::Cancel]);
    cluster.ask(child, Action::Delete).await;
    let (nested, _) = cluster.settled(child).await;
    assert_eq!(nested.state, State::new(Action::Delete, Status::Complete), "{}", nested.reason);
    let (stack, _) = cluster.settled(id).await;
    assert_eq!(stack.state, State::new(Action::Delete, Status::Complete), "{}", stack.reason);
    second.kill();
}

#[tokio::test(start_paused = true)]
async fn a_newer_update_reaches_a_nested_stack_whose_update_is_under_way() {
    let updated = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&updated);
    let cluster = Cluster::new(move |number, call, facts| match call {
        Call::Start(Action::Update) => {
            let word = facts.property("word").as_str().unwrap_or_default();
            noted.lock().expect("whole").push(format!("{} {word}", facts.name));
            if facts.name == "a" { waiting(5) } else { done() }
        }
        Call::Poll(Action::Update) if number < 10 => waiting(5),
        _ => done(),
    });
    let engine = cluster.engine();
    let id = cluster.create_of("inner.yaml", None).await;
    cluster.settled(id).await;
    cluster.update_to(id, "inner.yaml", "second").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    cluster.update_to(id, "inner.yaml", "third").await;
    let (stack, _) = cluster.settled(id).await;
    assert_eq!(stack.state, State::new(Action::Update, Status::Complete), "{}", stack.reason);
    // The dependant of `a` is updated directly to the new state, not first to the old one.
    assert_eq!(*updated.lock().expect("whole"), ["a second", "a third", "b third"]);
    engine.kill();
}

/// Heat's `test_nested_preemption`: what is in the nested stack would take forever.
#[tokio::test(start_paused = true)]
async fn a_nested_stack_that_an_update_removes_is_interrupted() {
    let cluster = Cluster::new(move |_, call, _| match call {
        Call::Start(Action::Update) | Call::Poll(Action::Update) => waiting(5),
        _ => done(),
    });
    let engine = cluster.engine();
    let id = cluster.create_of("inner.yaml", None).await;
    cluster.settled(id).await;
    cluster.update_to(id, "inner.yaml", "second").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    cluster.update_to(id, "Test::Thing", "third").await;
    let (stack, seconds) = cluster.settled(id).await;
    assert_eq!(stack.state, State::new(Action::Update, Status::Complete), "{}", stack.reason);
    assert!(seconds < 60.0, "{seconds}");
    assert_eq!(cluster.rows(id).await.len(), 1);
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_check_finds_what_was_never_created() {
    let cluster = Cluster::new(|_, call, _| match call {
        Call::Start(Action::Create) => Err(Failure::new(FailureKind::Refused, Class::Forbidden, "no")),
        _ => done(),
    });
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    let (stack, _) = cluster.settled(id).await;
    assert_eq!(stack.state, State::new(Action::Create, Status::Failed), "{}", stack.reason);
    cluster.ask(id, Action::Check).await;
    let (stack, _) = cluster.settled(id).await;
    assert_eq!(stack.state, State::new(Action::Check, Status::Failed), "{}", stack.reason);
    let row = &cluster.rows(id).await[0];
    assert_eq!(row.state, State::new(Action::Check, Status::Failed));
    // As in Heat, each resource of the reason has the whole reason of its own.
    assert_eq!(stack.reason, format!("Resource CHECK failed: {}: Resource CHECK failed: {}", row.name, row.reason));
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_has_its_turn_although_results_come_faster_than_they_are_stored() {
    let mut cluster = Cluster::new(|number, _, facts| {
        // Each call ends while the result of the other is stored.
        let state = i64::try_from(number).unwrap_or_default();
        let time = Duration::from_millis(if facts.name == "two" { 500 } else { 1 });
        Ok(Answer::After(time, Step::wait(state, Duration::ZERO).id("object")))
    });
    let clock = Arc::clone(&cluster.backends.clock);
    let store = MemoryStore::new(Arc::new(move || clock.now())).with_commits_of(Duration::from_secs(1));
    cluster.backends.store = Arc::new(store);
    let engine = cluster.engine();
    let mut two = cluster::sources("Test::Thing", "first");
    let template = Arc::make_mut(&mut two.template);
    let resources = template.as_map_mut().and_then(|map| map.get_mut("resources")).and_then(Value::as_map_mut);
    resources.expect("resources").insert("two".to_owned(), value!({"type": "Test::Thing"}));
    let id = cluster.create_limited(&two, 1).await;
    tokio::time::sleep(Duration::from_secs(90)).await;
    let stack = cluster.backends.store.stack(id).await.expect("read").expect("there");
    assert_eq!((stack.state.to_string().as_str(), stack.reason.as_str()), ("CREATE_FAILED", "Timed out"));
    engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_signal_without_a_response_does_not_delay_a_stop() {
    let cluster = Cluster::new(|_, call, _| match call {
        Call::Receive(_) => {
            let later = Some(Duration::from_mins(1));
            Err(Failure { retry_after: later, ..failure(FailureKind::Unavailable) })
        }
        _ => done(),
    });
    let engine = cluster.engine();
    let id = cluster.create(None).await;
    cluster.settled(id).await;
    let signal = message(&cluster, id, MessageBody::Signal(value!({"n": 1})));
    cluster.backends.store.send(&signal).await.expect("sent");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let stop = engine.stop().await;
    assert!(stop < Duration::from_secs(10), "{stop:?}");
    let left = cluster.backends.store.inbox(id, cluster.backends.clock.now()).await.expect("read");
    assert_eq!(left.len(), 1, "the next engine delivers it");
}

#[tokio::test(start_paused = true)]
async fn a_jump_of_the_clock_of_the_database_ends_no_lease() {
    let mut cluster = Cluster::new(|_, call, _| match call {
        Call::Start(Action::Create) => Ok(Answer::After(Duration::from_mins(1), Step::done().id("x"))),
        Call::Find => Ok(Answer::Found(Found::NotMade)),
        other => panic!("{other:?}"),
    });
    let ahead = cluster.database_that_jumps();
    let engines = [cluster.engine(), cluster.engine()];
    let id = cluster.create(None).await;
    // Between two renewals.
    tokio::time::sleep(Duration::from_secs(7)).await;
    ahead.store(120, Ordering::SeqCst);
    let (stack, at) = cluster.settled(id).await;
    assert_eq!((stack.state.status, cluster.driver.count(&CREATE)), (Status::Complete, 1), "{}", stack.reason);
    assert!(near(at, 60.0), "{at}");
    engines.into_iter().for_each(cluster::Running::kill);
}

#[tokio::test(start_paused = true)]
async fn a_jump_of_the_clock_of_the_database_between_two_failures_does_not_end_the_wait_for_a_lost_call() {
    // Listed 80 s after its creation.
    let start = tokio::time::Instant::now();
    let mut cluster = Cluster::new(move |_, call, _| match call {
        Call::Start(Action::Create) => Ok(Answer::After(Duration::from_mins(1), Step::done().id("it"))),
        Call::Find if start.elapsed() > Duration::from_secs(80) => {
            Ok(Answer::Found(Found::Made(Step::done().id("it"))))
        }
        Call::Find => Ok(Answer::Found(Found::NotMade)),
        other => panic!("{other:?}"),
    });
    let ahead = cluster.database_that_jumps();
    let first = cluster.engine();
    let id = cluster.create(None).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    first.kill();
    let second = cluster.engine();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(cluster.driver.count(&Call::Find) > 0, "it has taken over");
    ahead.store(200, Ordering::SeqCst);
    second.kill();
    let third = cluster.engine();
    let (stack, at) = cluster.settled(id).await;
    assert_eq!((stack.state.status, cluster.driver.count(&CREATE)), (Status::Complete, 1), "{}", stack.reason);
    assert!(at > 80.0 && at < 120.0, "{at}");
    third.kill();
}
