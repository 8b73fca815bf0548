//! Lookup of names that are known only when the resources are created.

use std::time::{Duration, Instant};

use kiln_client::{Bundle, Client, Stack, StackRequest};
use kiln_testcloud::Testcloud;
use kiln_value::{Map, Value, value};

use crate::processes::cluster::{Cluster, Limits};

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
    assert_eq!(
        settled(&client, "late").await.reason(),
        "Resource CREATE failed: resources[0]: resources.osd.Property error: resources.port.properties.network: Error \
         validating value 'nowhere': Unable to find network with name or id 'nowhere'"
    );
    assert_eq!(cluster.cloud.snapshot().count("networks"), networks);
}

/// As Heat on devcloud: an error of the property, at create and at update.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_object_is_an_error_of_the_property() {
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let cluster = Cluster::start(cloud, "sqlite", 1, Limits::default()).await;
    let client = cluster.client(cluster.cloud.users().demo);
    let request = |fixed_ips: Value| StackRequest {
        bundle: Bundle {
            template: Some(value!({
                "heat_template_version": "2018-08-31",
                "resources": {
                    "name": {"type": "OS::Heat::Value", "properties": {"value": "nowhere"}},
                    "net": {"type": "OS::Neutron::Net"},
                    "port": {
                        "type": "OS::Neutron::Port",
                        "properties": {"network": {"get_resource": "net"}, "fixed_ips": fixed_ips}
                    },
                },
            })),
            ..Bundle::default()
        },
        ..StackRequest::default()
    };
    let missing = value!([{"subnet": {"get_attr": ["name", "value"]}}]);
    let place = "Properties.fixed_ips[0].subnet: Unable to find subnet with name or id 'nowhere'";
    client.create_stack("bad", &request(missing.clone())).await.expect("accepted");
    assert_eq!(
        settled(&client, "bad").await.reason(),
        format!("Resource CREATE failed: StackValidationFailed: resources.port: Property error: port.{place}")
    );
    client.create_stack("good", &request(value!([]))).await.expect("accepted");
    assert_eq!(settled(&client, "good").await.status(), "CREATE_COMPLETE");
    client.update_stack("good", &request(missing)).await.expect("accepted");
    assert_eq!(
        settled(&client, "good").await.reason(),
        format!("Resource UPDATE failed: StackValidationFailed: resources.port: Property error: {place}")
    );
}

/// The stack when its operation has ended.
async fn settled(client: &Client, name: &str) -> Stack {
    let start = Instant::now();
    loop {
        let stack = client.stack(name, false).await.expect("the stack");
        if !stack.status().ends_with("_IN_PROGRESS") {
            return stack;
        }
        assert!(start.elapsed() < Duration::from_mins(1), "stuck");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
