//! The transport within the process, with paused time, and faults that take time.

use std::sync::Arc;
use std::time::Duration;

use kiln_cloud::{Connector, Credentials, Options, StackCloud};
use kiln_resource::{Cloud, CloudRequest, FailureKind, Method};
use kiln_testcloud::{Action, Fault, Service, Snapshot, Testcloud, When};
use kiln_value::{Value, value};
use tokio::time::Instant;

async fn cloud(testcloud: &Testcloud) -> Arc<StackCloud> {
    let options = Options::new(testcloud.auth_url().parse().expect("a URL"));
    let demo = testcloud.users().demo;
    let credentials = Credentials::password(demo.user, demo.password, demo.project, "Default");
    Connector::new(testcloud.transport(), options).cloud(&credentials).await
}

fn start() -> Testcloud {
    let epoch = "2026-01-01T00:00:00Z".parse().expect("a time");
    Testcloud::builder().seed(3).epoch(epoch).latency(Duration::from_millis(20)).in_process()
}

fn network(name: &str) -> CloudRequest {
    let body = value!({"network": {"name": name}});
    CloudRequest::new("network", Method::Post, "/v2.0/networks").body(body)
}

async fn networks(cloud: &StackCloud, name: &str) -> usize {
    let request = CloudRequest::new("network", Method::Get, "/v2.0/networks").query("name", name);
    let body = cloud.call(request).await.expect("a list").body;
    body.get("networks").and_then(Value::as_list).map_or(0, <[Value]>::len)
}

fn hit(testcloud: &Testcloud, service: Service, path: &str, action: Action) {
    testcloud.faults().add(Fault::new(service, "POST", path, action).when(When::Nth(1)));
}

#[tokio::test(start_paused = true)]
async fn the_seed_determines_everything() {
    async fn run() -> (Snapshot, Duration) {
        let began = Instant::now();
        let testcloud = start();
        let cloud = cloud(&testcloud).await;
        for name in ["a", "b"] {
            cloud.call(network(name)).await.unwrap();
        }
        let key = CloudRequest::new("compute", Method::Post, "/os-keypairs").body(value!({"keypair": {"name": "k"}}));
        cloud.call(key).await.unwrap();
        (testcloud.snapshot(), began.elapsed())
    }
    let (first, second) = (run().await, run().await);
    assert_eq!(first.0, second.0);
    // A token request and three calls of 20 ms each.
    assert_eq!((first.1.as_millis(), second.1), (80, first.1));
}

/// A request that was sent is executed, even if nobody waits for it.
#[tokio::test(start_paused = true)]
async fn a_canceled_request_is_executed() {
    let testcloud = start();
    let cloud = cloud(&testcloud).await;
    assert_eq!(networks(&cloud, "late").await, 0);
    hit(&testcloud, Service::Network, "/networks", Action::Delay(Duration::from_secs(10)));
    assert!(tokio::time::timeout(Duration::from_secs(1), cloud.call(network("late"))).await.is_err());
    assert_eq!(networks(&cloud, "late").await, 0);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(networks(&cloud, "late").await, 1);
}

#[tokio::test(start_paused = true)]
async fn requests_hang_before_or_after_execution() {
    let testcloud = start();
    let cloud = cloud(&testcloud).await;
    for (action, made) in [(Action::Hang, 0), (Action::Stall, 1), (Action::StatusAfter(504), 2)] {
        hit(&testcloud, Service::Network, "/networks", action);
        let failure = cloud.call(network("n")).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Unavailable);
        testcloud.faults().clear();
        assert_eq!(networks(&cloud, "n").await, made, "{action:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn lists_lag_behind_writes() {
    let testcloud = start();
    let cloud = cloud(&testcloud).await;
    hit(&testcloud, Service::Network, "/networks", Action::Lag(Duration::from_secs(5)));
    let made = cloud.call(network("lagging")).await.unwrap().body;
    assert_eq!(networks(&cloud, "lagging").await, 0);
    let id = made.get("network").and_then(|network| network.str_at("id")).unwrap();
    cloud.call(CloudRequest::new("network", Method::Get, format!("/v2.0/networks/{id}"))).await.expect("it is there");
    cloud.call(network("lagging")).await.unwrap();
    assert_eq!(networks(&cloud, "lagging").await, 1, "only the affected network is omitted");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(networks(&cloud, "lagging").await, 2);
    // Lists of key pairs have a different format.
    hit(&testcloud, Service::Compute, "/os-keypairs", Action::Lag(Duration::from_secs(5)));
    let key = CloudRequest::new("compute", Method::Post, "/os-keypairs").body(value!({"keypair": {"name": "k"}}));
    cloud.call(key).await.unwrap();
    let list = CloudRequest::new("compute", Method::Get, "/os-keypairs");
    assert_eq!(cloud.call(list).await.unwrap().body.get("keypairs"), Some(&value!([])));
}

#[tokio::test(start_paused = true)]
async fn builds_may_be_endless() {
    let testcloud = start();
    let cloud = cloud(&testcloud).await;
    hit(&testcloud, Service::Volume, "/volumes", Action::EndlessBuild);
    let volume = CloudRequest::new("block-storage", Method::Post, "/v3/volumes").body(value!({"volume": {"size": 1}}));
    let made = cloud.call(volume).await.unwrap().body;
    let id = made.get("volume").and_then(|volume| volume.str_at("id")).unwrap();
    // Also longer than the lifetime of a token.
    tokio::time::sleep(Duration::from_hours(1000)).await;
    let show = CloudRequest::new("block-storage", Method::Get, format!("/v3/volumes/{id}"));
    let body = cloud.call(show).await.unwrap().body;
    assert_eq!(body.get("volume").and_then(|volume| volume.str_at("status")), Some("creating"));
}
