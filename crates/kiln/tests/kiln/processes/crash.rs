//! kill -9 of the only engine during an action: another one, started afterwards, completes it, with nothing created
//! twice and nothing lost.
//!
//! Runs on SQLite, and on the servers in `KILN_TEST_DATABASES`. The seed determines when the engine is killed;
//! `KILN_CRASHES` is the number of seeds.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use kiln_client::{Bundle, Client, StackRequest};
use kiln_testcloud::{Service, Snapshot, THREE_TIER, Testcloud};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::processes::cluster::{Cluster, Limits, end_of, log_of};
use crate::processes::wanted::Wanted;

const TEMPLATE: &str = include_str!("../../../../../examples/three-tier.yaml");
const STACK: &str = "crash";

struct Crash {
    cluster: Cluster,
    client: Client,
    /// The objects before the stack.
    before: Snapshot,
    chance: StdRng,
    /// Prefix of failure messages.
    place: String,
}

impl Crash {
    async fn new(database: &str, seed: u64) -> Self {
        let cloud = Testcloud::builder()
            .latency(Duration::from_millis(5))
            .build_time(Duration::from_millis(400))
            .start()
            .await
            .expect("a simulated cloud");
        let limits = Limits {
            lease: Duration::from_secs(1),
            call_timeout: Duration::from_secs(5),
            call_limit: Duration::from_millis(1500),
            list_delay: Duration::from_millis(100),
            drain: Duration::from_secs(5),
        };
        let cluster = Cluster::start(cloud, database, 1, limits).await;
        let client = cluster.client(cluster.cloud.users().demo);
        let before = cluster.cloud.snapshot();
        Self { client, before, cluster, chance: StdRng::seed_from_u64(seed), place: format!("{database}, seed {seed}") }
    }

    fn calls(&self) -> usize {
        self.cluster.cloud.journal().count(|call| call.service != Service::Identity)
    }

    /// Kills the engine once or twice, each time after up to `most` requests to the cloud, then waits for the stack.
    async fn disturbed(&mut self, action: &str, most: usize) {
        let mut is_left = false;
        for _ in 0..self.chance.random_range(1..=2) {
            let (from, wait) = (self.calls(), self.chance.random_range(1..=most));
            self.place.push_str(&[", ", action, " killed after ", &wait.to_string()].concat());
            let start = Instant::now();
            while self.calls() < from + wait && start.elapsed() < Duration::from_secs(2) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            self.cluster.engines[0].kill();
            let left = self.client.stack(STACK, false).await;
            is_left |= left.is_ok_and(|stack| stack.status().ends_with("_IN_PROGRESS"));
            self.cluster.restart(0);
        }
        self.settled(action).await;
        let log = std::fs::read_to_string(self.cluster.folder().join(log_of(0))).expect("a log");
        let is_told = log.contains("took over the stack from a failed engine");
        assert!(is_told || !is_left, "{}: a take-over is logged", self.place);
    }

    /// Waits until the action is complete.
    async fn settled(&self, action: &str) {
        let (status, reason) = end_of(&self.client, STACK, Duration::from_secs(90)).await;
        assert_eq!(status, format!("{action}_COMPLETE"), "{}: {reason}", self.place);
    }

    async fn delete_disturbed(&mut self) {
        self.client.delete_stack(STACK).await.expect("a delete");
        self.disturbed("DELETE", 24).await;
        let left = |crash: &Self| {
            let left = crash.before.added_in(&crash.cluster.cloud.snapshot());
            // The trust is deleted after the stack.
            left.into_iter().filter(|object| !object.starts_with("trusts ")).collect::<Vec<_>>()
        };
        assert_eq!(left(self), Vec::<String>::new(), "{}: left behind", self.place);
    }

    /// Compares the cloud with the desired state; returns the IDs of the servers.
    async fn check(&self, wanted: &Wanted) -> Vec<String> {
        let (now, mut wrong) = (self.cluster.cloud.snapshot(), Vec::new());
        let ids = wanted.check(&self.client, STACK, &now, &mut wrong).await;
        for (kind, ids) in &ids {
            let made = now.count(kind) - self.before.count(kind);
            if made != ids.len() {
                wrong.push(format!("{made} {kind} were made, {} are the stack's", ids.len()));
            }
        }
        assert_eq!(wrong, Vec::<String>::new(), "{}", self.place);
        ids["servers"].iter().cloned().collect()
    }
}

fn databases() -> Vec<String> {
    let servers = std::env::var("KILN_TEST_DATABASES").unwrap_or_default();
    std::iter::once("sqlite").chain(servers.split_whitespace()).map(str::to_owned).collect()
}

fn seeds() -> std::ops::Range<u64> {
    0..std::env::var("KILN_CRASHES").ok().and_then(|count| count.parse().ok()).unwrap_or(3)
}

async fn created_and_deleted(database: &str, seed: u64) {
    let mut crash = Crash::new(database, seed).await;
    let template = kiln_yaml::parse(TEMPLATE).expect("a template").value;
    let bundle = Bundle { template: Some(template), ..Bundle::default() };
    let request = StackRequest { bundle, disable_rollback: Some(true), ..StackRequest::default() };
    crash.client.create_stack(STACK, &request).await.expect("a create");
    crash.disturbed("CREATE", 64).await;
    let (old, new) = (crash.before.counts(), crash.cluster.cloud.snapshot().counts());
    for (kind, count) in THREE_TIER {
        assert_eq!(new[kind] - old[kind], count, "{}: {kind}", crash.place);
    }
    crash.delete_disturbed().await;
    crash.cluster.end().await;
}

async fn updated_and_replaced(database: &str, seed: u64) {
    let mut crash = Crash::new(database, seed).await;
    let created = Wanted { pairs: 2, nested: true, members: 1, volume: true, ..Wanted::small() };
    crash.client.create_stack(STACK, &created.request()).await.expect("a create");
    crash.settled("CREATE").await;
    let servers = crash.check(&created).await;

    let updated = Wanted { members: 2, label: 1, large: true, ..created };
    crash.client.update_stack(STACK, &updated.request()).await.expect("an update");
    crash.disturbed("UPDATE", 24).await;
    let after = crash.check(&updated).await;
    assert!(servers.iter().all(|server| after.contains(server)), "{}: changed in place", crash.place);

    let replaced = updated.replaced();
    crash.client.update_stack(STACK, &replaced.request()).await.expect("an update");
    crash.disturbed("UPDATE", 40).await;
    let last = crash.check(&replaced).await;
    assert!(!after.iter().any(|server| last.contains(server)), "{}: replaced", crash.place);
    crash.delete_disturbed().await;
    crash.cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_and_a_delete_complete_although_the_engine_is_killed() {
    for database in databases() {
        // They mostly wait: for leases to end, for servers to be built.
        stream::iter(seeds()).for_each_concurrent(3, |seed| created_and_deleted(&database, seed)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn updates_complete_although_the_engine_is_killed() {
    for database in databases() {
        // They mostly wait: for leases to end, for servers to be built.
        stream::iter(seeds()).for_each_concurrent(3, |seed| updated_and_replaced(&database, seed)).await;
    }
}
