//! What a plug-in does wrong fails the call in hand, with a text that names the plug-in and the method.

use std::time::Duration;

use kiln_plugin::Program;
use kiln_resource::{Facts, FailureKind, Found, Operation, Progress};
use tokio::time::Instant;

use crate::world::{TOKEN, Tokens, World, context};

/// Long enough for a start of Python on a busy machine.
const LIMIT: Duration = Duration::from_secs(10);

async fn told(world: &World, does: &str) -> (FailureKind, String) {
    let failure = world.start(&World::facts("it", does), Operation::Create).await.expect_err("a failure");
    (failure.kind, failure.to_string())
}

#[tokio::test]
async fn every_fault_fails_its_call_and_the_next_call_works() {
    let world = World::new(LIMIT).await;
    for (does, text) in [
        ("die", "the process ended (exit status: 3): I have had enough"),
        ("close", "the process closed its output"),
        ("garbage", "it wrote a line that is no response in JSON: Hello world"),
        ("flood", "it sent a line of more than 4194304 bytes"),
        ("wrong_id", "it sent a response to no request: {\"jsonrpc\": \"2.0\", \"id\": "),
        ("wrong_shape", "the result has an unknown key size"),
        ("no_result", "the response has neither a result nor an error"),
        ("crash", "KeyError: 'size'"),
    ] {
        fails_once(&world, does, text).await;
    }
    assert_eq!(world.things(), 8);
    // The three that answered in the wrong form went on with the next call.
    assert_eq!(processes(&world), 6);
}

#[tokio::test]
async fn a_call_without_a_response_fails_and_the_next_call_works() {
    let world = World::new(LIMIT).await;
    fails_once(&world, "hang", "no response within 10 seconds").await;
    assert_eq!(world.things(), 1);
    assert_eq!(processes(&world), 2);
}

/// The number of processes that got calls.
fn processes(world: &World) -> usize {
    world.calls().into_iter().map(|(_, process)| process).collect::<std::collections::BTreeSet<String>>().len()
}

async fn fails_once(world: &World, does: &str, text: &str) {
    let (kind, found) = told(world, does).await;
    assert_eq!(kind, FailureKind::BrokenOff, "{does}: {found}");
    assert!(found.starts_with(&format!("PluginError: Plug-in odd, method create: {text}")), "{does}: {found}");
    let sound = world.start(&World::facts("sound", ""), Operation::Create).await;
    assert!(sound.is_ok_and(|step| step.physical_id.is_some()), "after {does}");
}

#[tokio::test]
async fn errors_of_the_plugin_are_shown_without_the_token() {
    let world = World::new(LIMIT).await;
    let (kind, text) = told(&world, "error").await;
    assert_eq!((kind, text.as_str()), (FailureKind::Refused, "BadRequest: no room for ******"));
    assert!(!text.contains(TOKEN));
}

#[tokio::test]
async fn a_call_with_a_rejected_token_is_repeated_once_with_another_one() {
    let world = World::new(LIMIT).await;
    world.start(&World::facts("it", "expired"), Operation::Create).await.unwrap();
    assert_eq!(told(&world, "revoked").await, (FailureKind::Refused, "Unauthorized: bad token".to_owned()));
    assert_eq!(world.calls().len(), 4);
}

#[tokio::test]
async fn calls_run_at_the_same_time_and_a_late_one_harms_no_other() {
    let world = World::new(LIMIT).await;
    let late = async { (told(&world, "hang").await.1, Instant::now()) };
    let slow = async {
        let mut calls = Vec::new();
        for number in 0..20 {
            let driver = world.driver();
            calls.push(tokio::spawn(async move {
                let facts = World::facts(&format!("n{number}"), "slow");
                driver.start(&context(&facts), &Operation::Create).await
            }));
        }
        for call in calls {
            assert!(call.await.unwrap().unwrap().physical_id.is_some());
        }
        Instant::now()
    };
    let ((text, end), slow) = tokio::join!(late, slow);
    assert_eq!(text, "PluginError: Plug-in odd, method create: no response within 10 seconds");
    assert!(slow < end, "they waited for the late one");
}

#[tokio::test]
async fn a_death_with_several_calls_in_progress_is_nobodys_fault() {
    let world = World::new(LIMIT).await;
    let (dies, waits) = (World::facts("dies", "slow die"), World::facts("waits", "hang"));
    let (dies, waits) = tokio::join!(world.start(&dies, Operation::Create), world.start(&waits, Operation::Create));
    for failure in [dies.unwrap_err(), waits.unwrap_err()] {
        assert_eq!(failure.kind, FailureKind::Unavailable);
        let text = "Plug-in odd, method create: the process ended (exit status: 3): I have had enough";
        assert_eq!(failure.message, text);
    }
}

#[tokio::test]
async fn garbage_beside_several_calls_is_charged_to_the_one_without_an_answer() {
    let world = World::new(LIMIT).await;
    let (garbage, slow) = (World::facts("garbage", "garbage"), World::facts("slow", "slow slow"));
    let (garbage, slow) = tokio::join!(world.start(&garbage, Operation::Create), world.start(&slow, Operation::Create));
    assert!(slow.unwrap().physical_id.is_some());
    let text = "Plug-in odd, method create: no response within 10 seconds; it wrote a line that is no response in JSON: \
                Hello world";
    assert_eq!(garbage.unwrap_err().message, text);
}

#[tokio::test]
async fn the_mark_finds_what_was_made_before_a_death() {
    let world = World::new(LIMIT).await;
    let facts = World::facts("it", "made die");
    assert_eq!(world.start(&facts, Operation::Create).await.unwrap_err().kind, FailureKind::BrokenOff);
    let Found::Made(step) = world.find(&facts).await.unwrap() else { panic!("not found") };
    let facts = Facts { physical_id: step.physical_id, ..facts };
    assert_eq!(world.attributes(&facts, &["mark"]).await.unwrap()["mark"], "mark-of-it".into());
    world.start(&facts, Operation::Delete).await.unwrap();
    assert_eq!(world.find(&facts).await.unwrap(), Found::NotMade);
    assert_eq!(world.things(), 0);
}

#[tokio::test]
async fn polls_have_the_state_of_the_step_before() {
    let world = World::new(LIMIT).await;
    let facts = World::facts("it", "");
    let mut step = world.start(&facts, Operation::Create).await.unwrap();
    let facts = Facts { physical_id: step.physical_id.take(), ..facts };
    let mut polls = 0;
    while let Progress::Wait { state, .. } = step.progress {
        step = world.driver().poll(&context(&facts), &Operation::Create, &state).await.unwrap();
        polls += 1;
    }
    assert_eq!(polls, 2);
}

#[tokio::test]
async fn constraints_ask_the_plugin_and_remember_what_it_accepts() {
    let world = World::new(LIMIT).await;
    let (name, constraint) = &world.plugins.constraints[0];
    assert_eq!(name, "test.zone");
    for _ in 0..3 {
        assert_eq!(constraint.check(&Tokens, "test.zone", &"mars".into()).await, Ok(()));
        assert_eq!(constraint.check(&Tokens, "test.zone", &"moon".into()).await, Err("there is no air".to_owned()));
    }
    assert_eq!(world.calls().len(), 4);
}

#[tokio::test]
async fn programs_that_do_not_describe_themselves_are_an_error_with_their_name() {
    let told = async |line: &str| {
        let Err(error) = kiln_plugin::start(vec![Program::parse(line).unwrap()], Duration::from_millis(500)).await
        else {
            panic!("{line} is accepted")
        };
        error
    };
    let ended = told("/bin/false").await;
    assert_eq!(ended, "/bin/false: describe: the process ended (exit status: 1)");
    assert_eq!(told("/bin/sleep 100").await, "/bin/sleep 100: describe: no response within 10 seconds");
    let cat = told("/bin/cat").await;
    assert_eq!(cat, "/bin/cat: describe: the response has neither a result nor an error");
}

#[tokio::test]
async fn faults_of_signals_and_snapshots_are_told_with_the_method() {
    // At the same time, because each waits for the limit of a call.
    tokio::join!(faults_of("signal"), faults_of("snapshot"), faults_of("delete_snapshot"));
}

async fn faults_of(method: &str) {
    let world = World::new(LIMIT).await;
    let driver = world.driver();
    assert!(driver.snapshots() && world.plugins.types[0].resource_type.signals);
    for (word, why) in [
        ("wrong_shape", "the result has an unknown key size"),
        ("die", "the process ended (exit status: 3): I have had enough"),
        ("garbage", "it wrote a line that is no response in JSON: Hello world"),
        ("hang", "no response within 10 seconds"),
    ] {
        let facts = Facts { physical_id: Some("thing".to_owned()), ..World::facts("it", &format!("{method}:{word}")) };
        let cx = context(&facts);
        let result = match method {
            "signal" => driver.receive(&cx, &"go".into()).await.map(drop),
            "snapshot" => driver.start(&cx, &Operation::Snapshot).await.map(drop),
            _ => driver.delete_snapshot(&cx).await.map(drop),
        };
        let failure = result.expect_err("a failure");
        assert_eq!(failure.message, format!("Plug-in odd, method {method}: {why}"));
        assert_eq!(failure.kind, FailureKind::BrokenOff);
    }
    // The next calls work.
    let facts = Facts { physical_id: Some("thing".to_owned()), ..World::facts("it", "") };
    let received = driver.receive(&context(&facts), &"go".into()).await.expect("received");
    assert_eq!(received.reason(&"go".into()).as_deref(), Some("Signal: number 1"));
    let saved = driver.start(&context(&facts), &Operation::Snapshot).await.expect("started");
    assert_eq!(driver.restored(&saved.data).expect("properties")["does"], "restored".into());
    let facts = Facts { data: saved.data, ..facts };
    assert!(driver.delete_snapshot(&context(&facts)).await.expect("deleted").is_some());
    assert_eq!(driver.delete_snapshot(&context(&facts)).await, Ok(None));
}
