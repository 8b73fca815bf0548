//! Snapshots that another request ends: what they have made in the cloud goes with them.

use std::time::{Duration, Instant};

use kiln_client::{Bundle, Client, StackRequest};
use kiln_testcloud::Testcloud;
use kiln_value::value;

use crate::processes::cluster::{Cluster, Limits, end_of};

/// A server and a volume, and a value that each update changes.
fn request(number: i64) -> StackRequest {
    let resources = value!({
        "server": {"type": "OS::Nova::Server", "properties": {
            "image": "cirros", "flavor": "m1.nano", "networks": [{"allocate_network": "none"}],
        }},
        "volume": {"type": "OS::Cinder::Volume", "properties": {"size": 1}},
        "value": {"type": "OS::Heat::Value", "properties": {"value": number}},
    });
    let template = value!({"heat_template_version": "2018-08-31", "resources": resources});
    StackRequest { bundle: Bundle { template: Some(template), ..Bundle::default() }, ..StackRequest::default() }
}

async fn settled(client: &Client, stack: &str, status: &str) {
    let (now, reason) = end_of(client, stack, Duration::from_mins(1)).await;
    assert_eq!(now, status, "{stack}: {reason}");
}

/// The images and backups in the cloud.
fn copies(cluster: &Cluster) -> (usize, usize) {
    let snapshot = cluster.cloud.snapshot();
    (snapshot.count("images"), snapshot.count("backups"))
}

/// Requests a snapshot and waits until its image and its backup are being made; returns its ID.
async fn begin(cluster: &Cluster, client: &Client, stack: &str) -> String {
    let (images, backups) = copies(cluster);
    let snapshot = client.create_snapshot(stack, None).await.expect("accepted");
    let snapshot = snapshot.get("snapshot").unwrap_or(&snapshot);
    let start = Instant::now();
    while copies(cluster) != (images + 1, backups + 1) {
        assert!(start.elapsed() < Duration::from_secs(20), "nothing is saved");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    snapshot.str_at("id").unwrap_or_default().to_owned()
}

/// A cloud in which a copy takes long enough to be interrupted, and a stack in it.
async fn created(limits: Limits) -> (Cluster, Client) {
    let cloud = Testcloud::builder().build_time(Duration::from_millis(600)).compute_minor(91).start().await;
    let cluster = Cluster::in_one_process(cloud.expect("a simulated cloud"), limits).await;
    let client = cluster.client(cluster.cloud.users().demo);
    client.create_stack("one", &request(1)).await.expect("accepted");
    settled(&client, "one", "CREATE_COMPLETE").await;
    (cluster, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_ends_a_snapshot_whose_copies_go_with_it() {
    let (cluster, client) = created(Limits::short()).await;
    let (images, backups) = copies(&cluster);
    // The first of two snapshots keeps its image and its backup.
    begin(&cluster, &client, "one").await;
    settled(&client, "one", "SNAPSHOT_COMPLETE").await;
    let second = begin(&cluster, &client, "one").await;
    client.update_stack("one", &request(2)).await.expect("accepted");
    settled(&client, "one", "UPDATE_COMPLETE").await;
    assert_eq!(copies(&cluster), (images + 2, backups + 2));
    client.delete_snapshot("one", &second).await.expect("accepted");
    let start = Instant::now();
    while client.snapshots("one").await.expect("snapshots").len() > 1 {
        assert!(start.elapsed() < Duration::from_secs(20), "the snapshot is not deleted");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(copies(&cluster), (images + 1, backups + 1));
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_copies_of_an_interrupted_snapshot_go_with_the_stack() {
    // Another engine takes over when the lease has ended.
    let limits = Limits { lease: Duration::from_millis(1_500), ..Limits::short() };
    let (mut cluster, client) = created(limits).await;
    let (images, backups) = copies(&cluster);
    begin(&cluster, &client, "one").await;
    cluster.restart_api().await;
    client.delete_stack("one").await.expect("accepted");
    settled(&client, "one", "DELETE_COMPLETE").await;
    assert_eq!(copies(&cluster), (images, backups));
    cluster.end().await;
}
