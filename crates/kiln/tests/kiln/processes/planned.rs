//! kill -9 of the API and of the engine while a plan is saved, approved and executed: it is executed once, or can still be
//! executed, and never twice or in part.
//!
//! `KILN_CRASHES` is the number of seeds.

use std::time::{Duration, Instant};

use kiln_client::{Bundle, Client, OperationPage, PlanFilter, RequestToPlan, SavedPlan, StackRequest};
use kiln_testcloud::{Account, Service, Snapshot, Testcloud};
use kiln_value::{Value, value};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::processes::cluster::{Cluster, Limits, end_of};
use crate::processes::wanted::Wanted;

const STACK: &str = "planned";

fn seeds() -> std::ops::Range<u64> {
    0..std::env::var("KILN_CRASHES").ok().and_then(|count| count.parse().ok()).unwrap_or(2)
}

async fn cluster(options: &str) -> (Cluster, Client) {
    let cloud = Testcloud::builder().latency(Duration::from_millis(5)).build_time(Duration::from_millis(300));
    let limits = Limits {
        lease: Duration::from_secs(1),
        call_timeout: Duration::from_secs(5),
        call_limit: Duration::from_millis(1500),
        list_delay: Duration::from_millis(100),
        drain: Duration::from_secs(5),
    };
    let cloud = cloud.start().await.expect("a simulated cloud");
    let cluster = Cluster::start_with(cloud, "sqlite", 1, limits, options).await;
    let client = cluster.client(cluster.cloud.users().demo);
    (cluster, client)
}

async fn settled(client: &Client, status: &str, place: &str) {
    let (now, reason) = end_of(client, STACK, Duration::from_mins(1)).await;
    assert_eq!(now, status, "{place}: {reason}");
}

async fn saved(client: &Client, request: &StackRequest) -> SavedPlan {
    client.save_plan(RequestToPlan::Update(STACK, request, &[]), None, None, true).await.expect("saved")
}

fn text(plan: &SavedPlan, key: &str) -> String {
    plan.value().str_at(key).unwrap_or_default().to_owned()
}

/// The operations of the stack that executed a plan.
async fn executions(client: &Client, plan: &str) -> usize {
    let operations = client.operations(STACK, &OperationPage::default()).await.expect("operations");
    operations.iter().filter(|operation| operation.str_at("plan_id") == Some(plan)).count()
}

/// The engine is killed before, during and between the calls.
async fn engine_is_killed(seed: u64) {
    let mut chance = StdRng::seed_from_u64(seed);
    let (mut cluster, client) = cluster("").await;
    let before: Snapshot = cluster.cloud.snapshot();
    let wanted = Wanted { pairs: 2, nested: true, members: 1, volume: true, ..Wanted::small() };
    client.create_stack(STACK, &wanted.request()).await.expect("a create");
    settled(&client, "CREATE_COMPLETE", "create").await;
    for next in [Wanted { members: 2, label: 1, large: true, ..wanted.clone() }, wanted.replaced()] {
        let plan = saved(&client, &next.request()).await;
        let (id, digest) = (text(&plan, "id"), text(&plan, "digest"));
        let calls = |cluster: &Cluster| cluster.cloud.journal().count(|call| call.service != Service::Identity);
        let from = calls(&cluster);
        client.execute_plan(&id, &digest).await.expect("accepted");
        let mut place = format!("seed {seed}");
        for _ in 0..chance.random_range(1..=3) {
            let wait = chance.random_range(0..=30);
            place.extend([", killed after ", &wait.to_string()]);
            let start = Instant::now();
            while calls(&cluster) < from + wait && start.elapsed() < Duration::from_secs(2) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            cluster.engines[0].kill();
            cluster.restart(0);
        }
        settled(&client, "UPDATE_COMPLETE", &place).await;
        let (now, mut wrong) = (cluster.cloud.snapshot(), Vec::new());
        let ids = next.check(&client, STACK, &now, &mut wrong).await;
        for (kind, ids) in &ids {
            let made = now.count(kind) - before.count(kind);
            if made != ids.len() {
                wrong.push(format!("{made} {kind} were made, {} are the stack's", ids.len()));
            }
        }
        assert_eq!(wrong, Vec::<String>::new(), "{place}");
        assert_eq!(executions(&client, &id).await, 1, "{place}");
        let again = client.execute_plan(&id, &digest).await.expect_err("refused").to_string();
        assert!(again.contains("it was executed"), "{place}: {again}");
    }
    cluster.end().await;
}

fn numbered(number: u64) -> StackRequest {
    let resources: Value = (0..20)
        .map(|i| {
            (
                format!("v{i}"),
                value!({
                    "type": "OS::Heat::Value", "properties": {"value": number}
                }),
            )
        })
        .collect::<kiln_value::Map>()
        .into();
    let template = value!({"heat_template_version": "2018-08-31", "resources": resources});
    StackRequest { bundle: Bundle { template: Some(template), ..Bundle::default() }, ..StackRequest::default() }
}

/// The API is killed at another time of each call.
async fn api_is_killed(seed: u64) {
    let mut chance = StdRng::seed_from_u64(seed);
    let (mut cluster, client) = cluster("").await;
    client.create_stack(STACK, &numbered(0)).await.expect("a create");
    settled(&client, "CREATE_COMPLETE", "create").await;
    let mut done = 0;
    for number in 1..=4 {
        let wait = Duration::from_micros(chance.random_range(0..30_000));
        let place = format!("seed {seed}, number {number}, killed after {wait:?}");
        let other = cluster.client(cluster.cloud.users().demo);
        let saving = tokio::spawn(async move {
            let request = numbered(number);
            other.save_plan(RequestToPlan::Update(STACK, &request, &[]), None, None, true).await.map(drop)
        });
        tokio::time::sleep(wait).await;
        cluster.restart_api().await;
        _ = saving.await.expect("no panic");
        for plan in client.saved_plans(&PlanFilter::default()).await.expect("a list") {
            let id = plan.str_at("id").unwrap_or_default();
            let whole = client.saved_plan(id).await.expect("a plan").document().expect("readable").expect("a document");
            assert_eq!(whole.resources.len(), 20, "{place}: a plan is saved with all its resources");
        }

        let plan = saved(&client, &numbered(number)).await;
        let (id, digest) = (text(&plan, "id"), text(&plan, "digest"));
        let other = cluster.client(cluster.cloud.users().demo);
        let executing = tokio::spawn({
            let (id, digest) = (id.clone(), digest.clone());
            async move { other.execute_plan(&id, &digest).await.map(drop) }
        });
        tokio::time::sleep(wait).await;
        cluster.restart_api().await;
        let answer = executing.await.expect("no panic");
        let status = text(&client.saved_plan(&id).await.expect("a plan"), "status");
        let is_executed = executions(&client, &id).await == 1;
        assert_eq!(status, if is_executed { "EXECUTED" } else { "READY" }, "{place}: {answer:?}");
        if !is_executed {
            assert!(answer.is_err(), "{place}: it said that it was accepted");
            client.execute_plan(&id, &digest).await.expect("it can still be executed");
        }
        settled(&client, "UPDATE_COMPLETE", &place).await;
        done += 1;
        assert_eq!(executions(&client, &id).await, 1, "{place}");
        let operations = client.operations(STACK, &OperationPage::default()).await.expect("operations");
        assert_eq!(operations.len(), 1 + done, "{place}");
    }
    cluster.end().await;
}

/// The API is killed while a plan is approved: the approval is there or not, and it counts once.
async fn approval_is_killed(seed: u64) {
    let mut chance = StdRng::seed_from_u64(seed);
    let (mut cluster, client) = cluster("[kiln]\nplan_approvals = 1\n").await;
    client.create_stack(STACK, &numbered(0)).await.expect("a create");
    settled(&client, "CREATE_COMPLETE", "create").await;
    let approver = Account { project: cluster.cloud.users().demo.project, ..cluster.cloud.users().admin };
    for number in 1..=4 {
        let wait = Duration::from_micros(chance.random_range(0..20_000));
        let place = format!("seed {seed}, number {number}, killed after {wait:?}");
        let plan = saved(&client, &numbered(number)).await;
        let (id, digest) = (text(&plan, "id"), text(&plan, "digest"));
        let approving = tokio::spawn({
            let (other, id) = (cluster.client(approver), id.clone());
            async move { other.approve_plan(&id).await }
        });
        tokio::time::sleep(wait).await;
        cluster.restart_api().await;
        let answer = approving.await.expect("no panic");
        let approvals = async || {
            let plan = client.saved_plan(&id).await.expect("a plan");
            plan.value().get("approvals").and_then(Value::as_list).map_or(0, <[Value]>::len)
        };
        let given = approvals().await;
        assert!(given == 1 || answer.is_err(), "{place}: it said that it was approved");
        if given == 0 {
            let refused = client.execute_plan(&id, &digest).await.expect_err("refused").to_string();
            assert!(refused.contains("0 of the 1 approvals"), "{place}: {refused}");
        }
        cluster.client(approver).approve_plan(&id).await.expect("approved, perhaps again");
        assert_eq!(approvals().await, 1, "{place}");
        client.execute_plan(&id, &digest).await.expect("approved");
        settled(&client, "UPDATE_COMPLETE", &place).await;
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_is_executed_once_although_the_engine_is_killed() {
    for seed in seeds() {
        Box::pin(engine_is_killed(seed)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_is_executed_once_or_not_at_all_although_the_api_is_killed() {
    for seed in seeds() {
        Box::pin(api_is_killed(seed)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_counts_once_although_the_api_is_killed() {
    for seed in seeds() {
        Box::pin(approval_is_killed(seed)).await;
    }
}
