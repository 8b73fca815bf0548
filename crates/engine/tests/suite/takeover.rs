//! Engines that fail at any moment, on a simulated cloud: the next one completes the operation, and nothing is created
//! twice.
//!
//! The seed determines when the engine fails and which responses are lost. Use `KILN_SEEDS=from..to` for other seeds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt as _, stream};
use kiln_cloud::{Connector, Credentials};
use kiln_engine::{Engine, Options};
use kiln_plan::{ResourceTypes, Sources};
use kiln_resource::{Action, Cloud, Failure, Registry, StackId, Status};
use kiln_stack::{Backends, Chance, Clock, Clouds, SystemClock};
use kiln_store::{Options as StoreOptions, SqlStore, Stack, StackRequest, Store};
use kiln_template::Files;
use kiln_template::environment::Environment;
use kiln_testcloud::{Action as FaultAction, Fault, THREE_TIER, Testcloud, When};
use kiln_value::{Map, Secret};
use tokio::time::Instant;

struct OneCloud(Arc<dyn Cloud>);

#[async_trait]
impl Clouds for OneCloud {
    async fn cloud(&self, _: &Stack) -> Result<Arc<dyn Cloud>, Failure> {
        Ok(Arc::clone(&self.0))
    }
}

struct Bench {
    cloud: Testcloud,
    backends: Backends,
    engines: Vec<tokio::task::JoinHandle<()>>,
}

impl Bench {
    async fn new(seed: u64) -> Self {
        let cloud = Testcloud::builder()
            .seed(seed)
            .latency(Duration::from_millis(2))
            .build_time(Duration::from_millis(60))
            .start()
            .await
            .expect("a simulated cloud");
        let demo = cloud.users().demo;
        let transport = kiln_cloud::SharedClient::new(&kiln_cloud::TlsOptions::default()).expect("a transport");
        let options = kiln_cloud::Options::new(cloud.auth_url().parse().expect("a URL"));
        let connector = Connector::new(Arc::new(transport), options);
        let credentials = Credentials::password(demo.user, demo.password, demo.project, "Default");
        let key = Secret::new("0123456789abcdef0123456789abcdef".to_owned());
        let store = SqlStore::open(StoreOptions::new("sqlite::memory:", key)).await.expect("a database");
        store.migrate().await.expect("a schema");
        let types = kiln_resource::shipped::types().expect("sound definitions");
        let backends = Backends {
            store: Arc::new(store),
            resource_types: Arc::new(ResourceTypes::new(Registry::build(types, kiln_drivers::driver_for))),
            clouds: Arc::new(OneCloud(connector.cloud(&credentials).await)),
            clock: Arc::new(SystemClock),
            chance: Arc::new(Chance::seeded(seed)),
            caches: Arc::default(),
        };
        Self { cloud, backends, engines: Vec::new() }
    }

    /// Starts an engine whose leases expire soon after it fails.
    fn start_engine(&mut self) {
        let options = Options { lease: Duration::from_millis(300), poll: Duration::from_millis(50), ..quick() };
        let engine = Engine::new(options, self.backends.clone());
        self.engines.push(tokio::spawn(async move {
            let (_keep, stop) = tokio::sync::watch::channel(false);
            engine.run(stop).await.expect("the engine runs");
        }));
    }

    /// Like kill -9: nothing is completed or released.
    fn kill_engines(&mut self) {
        self.engines.drain(..).for_each(|engine| engine.abort());
    }

    async fn create(&self, template: &str) -> StackId {
        let document = kiln_template::source::parse(template, "three-tier.yaml", usize::MAX).expect("a template");
        let environment =
            Environment::from_sections(&Map::from_iter([("parameters".to_owned(), kiln_value::value!({}))]))
                .expect("an environment");
        let sources = Sources {
            template: Arc::new(document.value),
            environment: Arc::new(environment),
            files: Arc::new(Files(BTreeMap::new())),
        };
        crate::stack::create(&self.backends, "three-tier", &sources).await
    }

    async fn settled(&self, id: StackId) -> Stack {
        crate::stack::settled(&*self.backends.store, id, Duration::from_mins(1)).await
    }
}

/// Limits for a cloud that responds within milliseconds.
fn quick() -> Options {
    let (call_limit, list_delay) = (Duration::from_millis(1_500), Duration::from_millis(200));
    Options { call_limit, list_delay, ..Options::default() }
}

fn seeds() -> std::ops::Range<u64> {
    let range = std::env::var("KILN_SEEDS").ok();
    let parsed = range
        .as_deref()
        .and_then(|range| range.split_once(".."))
        .and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    parsed.unwrap_or(0..4)
}

const TEMPLATE: &str = include_str!("../../../../examples/three-tier.yaml");

async fn dies_and_is_replaced(seed: u64, lost_replies: bool) {
    let mut bench = Bench::new(seed).await;
    if lost_replies {
        let fault = Fault {
            service: None,
            method: Some("POST".to_owned()),
            path: "/".to_owned(),
            when: When::Probability(0.15),
            action: FaultAction::LostReply,
        };
        bench.cloud.faults().add(fault);
    }
    let before = bench.cloud.snapshot();
    let id = bench.create(TEMPLATE).await;
    // Fails after a number of requests to the cloud, twice.
    let mut deaths = vec![5 + seed * 7 % 60, 15 + seed * 13 % 60];
    bench.start_engine();
    while let Some(after) = deaths.pop() {
        let from = bench.cloud.journal().list().len() as u64;
        let start = Instant::now();
        while (bench.cloud.journal().list().len() as u64) < from + after && start.elapsed() < Duration::from_secs(3) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        bench.kill_engines();
        bench.start_engine();
    }
    let stack = bench.settled(id).await;
    assert_eq!(stack.state.status, Status::Complete, "seed {seed}: {}", stack.reason);

    let counts = bench.cloud.snapshot().counts();
    let old = before.counts();
    let made = |kind: &str| counts[kind] - old[kind];
    for (kind, wanted) in THREE_TIER {
        assert_eq!(made(kind), wanted, "seed {seed}: {kind}: {:?}", before.added_in(&bench.cloud.snapshot()));
    }

    bench.cloud.faults().clear();
    bench.backends.store.request(id, StackRequest::new(Action::Delete, SystemClock.now())).await.expect("asked");
    let stack = bench.settled(id).await;
    assert_eq!(stack.state.status, Status::Complete, "seed {seed}: {}", stack.reason);
    assert_eq!(before.added_in(&bench.cloud.snapshot()), Vec::<String>::new(), "seed {seed}: left behind");
    bench.kill_engines();
}

/// Two at the same time: they wait most of the time.
async fn at_once(runs: impl Iterator<Item = impl Future<Output = ()>>) {
    stream::iter(runs).for_each_concurrent(2, |run| run).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_made_twice_when_engines_die() {
    at_once(seeds().map(|seed| dies_and_is_replaced(seed, false))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_made_twice_when_replies_are_lost_too() {
    at_once(seeds().map(|seed| dies_and_is_replaced(seed + 1_000, true))).await;
}
