//! Lookup of names in the properties of nested stacks.

use std::time::{Duration, Instant};

use kiln_client::{Bundle, StackRequest};
use kiln_testcloud::Testcloud;
use kiln_value::{Map, value};

use crate::cluster::{Cluster, Limits};

/// A nested stack is validated when it is created: a missing network is an error before anything is created.
#[tokio::test(flavor = "multi_thread")]
async fn a_nested_stack_is_validated_when_it_is_created() {
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let networks = cloud.snapshot().count("networks");
    let cluster = Cluster::start(cloud, "sqlite", 1, Limits::default()).await;
    let client = cluster.client(cluster.cloud.users().demo);
    let template = value!({
        "heat_template_version": "2018-08-31",
        "resources": {
            "name": {"type": "OS::Heat::Value", "properties": {"value": "nowhere"}},
            "osd": {"type": "OS::Heat::ResourceGroup", "properties": {
                "count": 1,
                "resource_def": {"type": "port.yaml", "properties": {"net": {"get_attr": ["name", "value"]}}},
            }},
        },
    });
    let child = "heat_template_version: 2018-08-31
parameters: {net: {type: string}}
resources:
  other: {type: OS::Neutron::Net}
  port: {type: OS::Neutron::Port, properties: {network: {get_param: net}}}
";
    let files = Map::from([("port.yaml".to_owned(), child.into())]);
    let request = StackRequest {
        bundle: Bundle { template: Some(template), files, ..Bundle::default() },
        ..StackRequest::default()
    };
    client.create_stack("late", &request).await.expect("accepted");
    let start = Instant::now();
    let stack = loop {
        let stack = client.stack("late", false).await.expect("the stack");
        if !stack.status().ends_with("_IN_PROGRESS") {
            break stack;
        }
        assert!(start.elapsed() < Duration::from_mins(1), "stuck");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(
        stack.reason(),
        "Resource CREATE failed: resources[0]: resources.osd.Property error: resources.port.properties.network: Error \
         validating value 'nowhere': Unable to find network with name or id 'nowhere'"
    );
    assert_eq!(cluster.cloud.snapshot().count("networks"), networks);
}
