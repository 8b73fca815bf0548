//! Many servers that are built at the same time, by a Nova that needs time for each request.

use std::time::Duration;

use kiln_client::{Bundle, StackRequest};
use kiln_testcloud::{Quota, Testcloud};
use kiln_value::value;

use crate::processes::cluster::{Cluster, Limits, end_of};

const SERVERS: i64 = 120;

#[tokio::test(flavor = "multi_thread")]
async fn lists_answer_polls_of_many_servers() {
    let quota = Quota { instances: None, cores: None, ram: None, ports: None, ..Quota::default() };
    let cloud = Testcloud::builder()
        .quota(quota)
        .latency(Duration::from_millis(100))
        .build_time(Duration::from_secs(3))
        .start()
        .await
        .expect("a simulated cloud");
    let cluster = Cluster::start(cloud, "sqlite", 1, Limits::default()).await;
    let client = cluster.client(cluster.cloud.users().demo);
    let server = value!({"image": "cirros", "flavor": "m1.tiny", "networks": [{"network": "private"}]});
    let group = value!({"count": SERVERS, "resource_def": {"type": "OS::Nova::Server", "properties": server}});
    let template = value!({
        "heat_template_version": "2018-08-31",
        "resources": {"servers": {"type": "OS::Heat::ResourceGroup", "properties": group}},
    });
    let bundle = Bundle { template: Some(template), ..Bundle::default() };
    client.create_stack("many", &StackRequest { bundle, ..StackRequest::default() }).await.expect("accepted");
    let (status, reason) = end_of(&client, "many", Duration::from_mins(3)).await;
    assert_eq!(status, "CREATE_COMPLETE", "{reason}");

    let reads = |part: &str| {
        let is_read = |call: &kiln_testcloud::RecordedCall| call.method == "GET" && call.path.contains(part);
        cluster.cloud.journal().count(is_read)
    };
    let (single, lists) = (reads("/servers/") - reads("/servers/detail"), reads("/servers/detail"));
    println!("{single} reads of single servers, {lists} lists");
    assert!(lists > 0 && single < 300, "{single} reads of single servers, {lists} lists");
    cluster.end().await;
}
