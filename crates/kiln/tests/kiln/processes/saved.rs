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

#[tokio::test(flavor = "multi_thread")]
async fn what_an_unfinished_snapshot_has_made_goes_with_it() {
    let cloud = Testcloud::builder().build_time(Duration::from_millis(1_200)).compute_minor(91).start().await;
    let mut cluster = Cluster::start(cloud.expect("a simulated cloud"), "sqlite", 1, Limits::short()).await;
    let client = cluster.client(cluster.cloud.users().demo);
    let (images, backups) = copies(&cluster);

    // An update ends the second of two snapshots. The first keeps its image and its backup.
    client.create_stack("one", &request(1)).await.expect("accepted");
    settled(&client, "one", "CREATE_COMPLETE").await;
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

    // The stack is deleted while it is saved, and the engine is killed.
    begin(&cluster, &client, "one").await;
    cluster.engines[0].kill();
    client.delete_stack("one").await.expect("accepted");
    cluster.restart(0);
    settled(&client, "one", "DELETE_COMPLETE").await;
    assert_eq!(copies(&cluster), (images, backups));
    cluster.end().await;
}
