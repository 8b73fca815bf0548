//! The pre-flight before creates and updates.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use kiln_engine::{Check, Preflight};
use kiln_plan_document::Verdict;
use kiln_resource::Action;
use kiln_store::{Error, EventQuery, Stack, StackRequest};

use crate::groups::bench::Bench;

const TEMPLATE: &str = "
heat_template_version: '2018-08-31'
resources:
  a: {type: 'OS::Heat::TestResource', properties: {wait_secs: 3}}
";

/// Finds the same each time, and counts how often it is asked.
struct Found {
    verdict: Verdict,
    is_for_all: bool,
    pause: Duration,
    asked: AtomicUsize,
}

impl Found {
    fn new(verdict: Verdict, is_for_all: bool, pause: Duration) -> Arc<Self> {
        Arc::new(Self { verdict, is_for_all, pause, asked: AtomicUsize::default() })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Preflight for Found {
    fn is_for_all(&self) -> bool {
        self.is_for_all
    }

    async fn check(&self, _: &Stack) -> Result<Vec<Check>, Error> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(self.pause).await;
        let check =
            |verdict| Check { check: "names".to_owned(), verdict, message: "taken".to_owned(), resources: Vec::new() };
        Ok(vec![check(Verdict::Passed), check(self.verdict)])
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_check_ends_a_request_before_its_first_operation() {
    let bench = Bench::new();
    let found = Found::new(Verdict::Fail, true, Duration::ZERO);
    let _engine = bench.engine_of(|engine| engine.with_preflight(Arc::clone(&found) as _));
    let id = bench.create(TEMPLATE, None).await;
    let stack = bench.settled(id).await;
    let reason = "The pre-flight failed, and nothing was changed: names: taken";
    assert_eq!((stack.state.to_string().as_str(), stack.reason.as_str()), ("CREATE_FAILED", reason));
    assert_eq!(bench.backends.store.resources(id).await.expect("read"), []);
    // Only creates and updates are checked.
    let delete = StackRequest::new(Action::Delete, bench.backends.clock.now());
    bench.backends.store.request(id, delete).await.expect("asked");
    assert!(bench.settled(id).await.state.is_complete(Action::Delete));
    assert_eq!(found.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_may_fail_is_an_event() {
    for (is_for_all, asked, events) in [(true, 1, 1), (false, 0, 0)] {
        let bench = Bench::new();
        let found = Found::new(Verdict::Warn, is_for_all, Duration::ZERO);
        let _engine = bench.engine_of(|engine| engine.with_preflight(Arc::clone(&found) as _));
        let id = bench.create(TEMPLATE, None).await;
        bench.completed(id).await;
        let query = EventQuery { stacks: vec![id], ..EventQuery::default() };
        let all = bench.backends.store.events(&query).await.expect("read");
        let told = all.iter().filter(|event| event.reason == "Pre-flight WARN names: taken").count();
        assert_eq!((found.asked(), told), (asked, events), "{is_for_all}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_killed_engine_is_followed_by_one_that_asks_again_unless_the_request_has_begun() {
    for delay in (50..2_000).step_by(150) {
        let bench = Bench::new();
        let found = Found::new(Verdict::Skipped, true, Duration::from_millis(700));
        let start = || bench.engine_of(|engine| engine.with_preflight(Arc::clone(&found) as _));
        let engine = start();
        let id = bench.create(TEMPLATE, None).await;
        tokio::time::sleep(Duration::from_millis(delay)).await;
        engine.kill();
        let before = found.asked();
        let _engine = start();
        bench.completed(id).await;
        assert!((1..=2).contains(&found.asked()), "{delay}");
        assert!(delay < 1_000 || found.asked() == before, "{delay}: it had begun");
    }
}
