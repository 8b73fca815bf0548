//! Lifecycle plug-ins before and after operations.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kiln_engine::LifecyclePlugin;
use kiln_resource::{Action, Status};
use kiln_store::StackRequest;
use kiln_value::Value;

use crate::groups::bench::Bench;

const TEMPLATE: &str = "
heat_template_version: '2018-08-31'
resources:
  a: {type: 'OS::Heat::TestResource', properties: {wait_secs: 3}}
";
const BROKEN: &str = "
heat_template_version: '2018-08-31'
resources:
  a: {type: 'OS::Heat::TestResource', properties: {fail: true}}
";

/// What the plug-ins were calls, in order.
type Calls = Arc<Mutex<Vec<String>>>;

struct Plugin {
    name: &'static str,
    calls: Calls,
    /// Refuses this action before it.
    refused: Option<&'static str>,
    pause: Duration,
}

#[async_trait]
impl LifecyclePlugin for Plugin {
    fn name(&self) -> &str {
        self.name
    }

    fn limit(&self) -> Duration {
        Duration::from_mins(1)
    }

    async fn run(&self, document: &Value) -> Result<(), String> {
        tokio::time::sleep(self.pause).await;
        let at = |key: &str| document.str_at(key).expect(key).to_owned();
        let failed = document.get("failed").map(|failed| format!(" failed={}", failed.is_truthy())).unwrap_or_default();
        let status = document.get("stack").and_then(|stack| stack.str_at("status")).expect("a status");
        let (phase, action) = (at("phase"), at("action"));
        self.calls.lock().expect("whole").push(format!("{} {phase} {action}: {status}{failed}", self.name));
        if phase == "before" && self.refused == Some(action.as_str()) {
            return Err("no".to_owned());
        }
        if phase == "after" { Err("nobody cares".to_owned()) } else { Ok(()) }
    }
}

fn plugins(calls: &Calls, refused: Option<&'static str>, pause: Duration) -> Vec<Arc<dyn LifecyclePlugin>> {
    let plugin = |name, refused| Plugin { name, calls: Arc::clone(calls), refused, pause };
    vec![Arc::new(plugin("one", None)), Arc::new(plugin("two", refused)), Arc::new(plugin("three", None))]
}

async fn taken(calls: &Calls) -> Vec<String> {
    // The runs after an operation come from the outbox.
    tokio::time::sleep(Duration::from_secs(10)).await;
    std::mem::take(&mut *calls.lock().expect("whole"))
}

async fn asked(bench: &Bench, id: kiln_resource::StackId, action: Action) {
    let request = StackRequest::new(action, bench.backends.clock.now());
    bench.backends.store.request(id, request).await.expect("asked");
}

#[tokio::test(start_paused = true)]
async fn plugins_run_in_order_before_and_after_each_operation() {
    let (bench, calls) = (Bench::new(), Calls::default());
    let _engine = bench.engine_of(|engine| engine.with_plugins(plugins(&calls, None, Duration::ZERO)));
    let id = bench.create(TEMPLATE, None).await;
    bench.completed(id).await;
    let all = |phase: &str| ["one", "two", "three"].map(|name| format!("{name} {phase}"));
    let both = |before: &str, after: &str| [all(before), all(after)].concat();
    assert_eq!(
        taken(&calls).await,
        both("before CREATE: CREATE_IN_PROGRESS", "after CREATE: CREATE_COMPLETE failed=false")
    );
    for action in [Action::Check, Action::Suspend, Action::Resume, Action::Delete] {
        asked(&bench, id, action).await;
        bench.settled(id).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let before = format!("before {action}: {action}_IN_PROGRESS");
        let after = format!("after {action}: {action}_COMPLETE failed=false");
        assert_eq!(taken(&calls).await, both(&before, &after));
    }
    let broken = bench.create_in("demo", "broken", BROKEN).await;
    bench.settled(broken).await;
    assert_eq!(taken(&calls).await[3..], all("after CREATE: CREATE_FAILED failed=true"));
}

#[tokio::test(start_paused = true)]
async fn a_plugin_can_refuse_an_operation() {
    let (bench, calls) = (Bench::new(), Calls::default());
    let _engine = bench.engine_of(|engine| engine.with_plugins(plugins(&calls, Some("DELETE"), Duration::ZERO)));
    let id = bench.create(TEMPLATE, None).await;
    bench.completed(id).await;
    taken(&calls).await;
    let before = bench.row(id, "a").await;
    asked(&bench, id, Action::Delete).await;
    let stack = bench.settled(id).await;
    assert_eq!(
        (stack.state.to_string().as_str(), stack.reason.as_str()),
        ("DELETE_FAILED", "Lifecycle plug-in two failed: no")
    );
    assert_eq!(bench.row(id, "a").await, before, "nothing was done");
    let expected = [
        "one before DELETE: DELETE_IN_PROGRESS",
        "two before DELETE: DELETE_IN_PROGRESS",
        "one after DELETE: DELETE_FAILED failed=true",
    ];
    assert_eq!(taken(&calls).await, expected);
}

/// The operation that is refused came during another one: that one's running calls are completed.
#[tokio::test(start_paused = true)]
async fn a_refused_operation_completes_what_is_running() {
    let (bench, calls) = (Bench::new(), Calls::default());
    let _engine = bench.engine_of(|engine| engine.with_plugins(plugins(&calls, Some("UPDATE"), Duration::ZERO)));
    let id = bench.create(TEMPLATE, None).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    asked(&bench, id, Action::Update).await;
    let stack = bench.settled(id).await;
    assert_eq!(
        (stack.state.to_string().as_str(), stack.reason.as_str()),
        ("UPDATE_FAILED", "Lifecycle plug-in two failed: no")
    );
    let row = bench.row(id, "a").await;
    assert_eq!(row.state.status, Status::Complete, "{row:?}");
}

#[tokio::test(start_paused = true)]
async fn a_killed_engine_leaves_no_operation_without_its_runs() {
    for delay in (100..6_000).step_by(450) {
        let (bench, calls) = (Bench::new(), Calls::default());
        let pause = Duration::from_millis(400);
        let start = || bench.engine_of(|engine| engine.with_plugins(plugins(&calls, None, pause)));
        let engine = start();
        let id = bench.create(TEMPLATE, None).await;
        tokio::time::sleep(Duration::from_millis(delay)).await;
        engine.kill();
        let _engine = start();
        bench.completed(id).await;
        tokio::time::sleep(Duration::from_mins(6)).await;
        let calls = taken(&calls).await;
        for phase in ["before", "after"] {
            let runs: Vec<&String> = calls.iter().filter(|run| run.contains(phase)).collect();
            assert!(runs.len() >= 3 && runs.len() <= 6, "killed after {delay} ms: {calls:?}");
            assert!(runs[runs.len() - 3].starts_with("one") && runs[runs.len() - 1].starts_with("three"), "{calls:?}");
        }
        // Once it is stored that the operation has begun, no engine runs them before it again.
        if delay > 3 * 400 + 100 {
            assert_eq!(
                calls.iter().filter(|run| run.contains("before")).count(),
                3,
                "killed after {delay} ms: {calls:?}"
            );
        }
    }
}

/// A plug-in that never comes back from stacks with a name that begins with `h`.
struct Hanging;

#[async_trait]
impl LifecyclePlugin for Hanging {
    fn name(&self) -> &'static str {
        "hanging"
    }

    fn limit(&self) -> Duration {
        Duration::from_mins(1)
    }

    async fn run(&self, document: &Value) -> Result<(), String> {
        if document.get("stack").and_then(|stack| stack.str_at("name")).expect("a name").starts_with('h') {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

/// More stacks than may be in their first steps at the same time hang in a plug-in: the others are created meanwhile.
#[tokio::test(start_paused = true)]
async fn stacks_that_hang_in_a_plugin_do_not_block_others() {
    let bench = Bench::new();
    let _engine = bench.engine_of(|engine| engine.with_plugins(vec![Arc::new(Hanging)]));
    let mut hanging = Vec::new();
    for number in 0..100 {
        hanging.push(bench.create_in("demo", &format!("h{number}"), TEMPLATE).await);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = tokio::time::Instant::now();
    let free = bench.create_in("demo", "free", TEMPLATE).await;
    bench.completed(free).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    for stack in hanging {
        assert!(bench.backends.store.stack(stack).await.expect("read").expect("there").is_pending());
    }
}
