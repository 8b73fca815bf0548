//! How many requests to the database the engines of a cluster make, by their number: idle, and for each stack.

use std::time::Duration;

use crate::groups::bench::Bench;

/// Seconds without work.
const IDLE: u32 = 10;
const STACK: &str = "{heat_template_version: 2018-08-31, resources: \
                     {one: {type: OS::Heat::TestResource, properties: {wait_secs: 2}}}}";

/// Requests to the database.
#[derive(Debug)]
struct Requests {
    /// Of all engines together in a second without work.
    idle: f64,
    /// For a stack with one resource, from its creation to its end, beside the idle ones.
    of_stack: f64,
}

/// Stacks are created in pauses of 100 ms, so that each rings for itself.
async fn requests_of(engines: usize, number: usize) -> Requests {
    let bench = Bench::new();
    let running: Vec<_> = (0..engines).map(|_| bench.engine()).collect();
    let while_idle = Duration::from_secs(u64::from(IDLE));
    tokio::time::sleep(while_idle).await;
    let before = bench.store.calls();
    tokio::time::sleep(while_idle).await;
    let idle = count(bench.store.calls() - before) / f64::from(IDLE);
    let (before, start) = (bench.store.calls(), tokio::time::Instant::now());
    let mut stacks = Vec::new();
    for number in 0..number {
        stacks.push(bench.create_in("demo", &format!("s{number}"), STACK).await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let all = count(bench.store.calls() - before) - idle * start.elapsed().as_secs_f64();
    for stack in &stacks {
        assert!(!bench.backends.store.stack(*stack).await.expect("read").expect("there").is_pending());
    }
    running.into_iter().for_each(crate::groups::bench::Running::kill);
    Requests { idle, of_stack: all / count(stacks.len()) }
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).expect("few"))
}

/// Each engine looks every second, and each that hears of a stack tries to claim it.
async fn measured(engines: usize, stacks: usize) {
    let requests = requests_of(engines, stacks).await;
    println!("{engines} engines: {requests:.1?}");
    assert!(requests.idle <= 4.0 * count(engines), "{engines} engines: {requests:?}");
    assert!(requests.of_stack <= 40.0 + 8.0 * count(engines), "{engines} engines: {requests:?}");
}

#[tokio::test(start_paused = true)]
async fn the_requests_of_up_to_a_hundred_engines_are_bounded() {
    for engines in [1, 10, 100] {
        measured(engines, 100).await;
    }
}

#[tokio::test(start_paused = true)]
#[ignore = "takes three minutes: a part of .ci/run nightly"]
async fn the_requests_of_a_thousand_engines_are_bounded() {
    measured(1_000, 20).await;
}
