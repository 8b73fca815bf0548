//! `stack_scheduler_hints`: what the schedulers of Nova and Cinder learn about a stack.

use std::time::Duration;

use kiln_client::{Bundle, StackRequest};
use kiln_testcloud::Testcloud;
use kiln_value::{Map, value};
use serde_json::{Value, json};

use crate::processes::cluster::{Cluster, Limits, end_of};

const TIER: &str = "heat_template_version: 2018-08-31
resources:
  server:
    type: OS::Nova::Server
    properties:
      image: cirros
      flavor: m1.tiny
      networks: [{network: private}]
      scheduler_hints: {rack: r7, heat_stack_name: mine}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_and_volumes_name_their_stack_to_the_scheduler() {
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let options = "[DEFAULT]\nstack_scheduler_hints = true\n";
    let cluster = Cluster::start_with(cloud, "sqlite", 1, Limits::default(), options).await;
    let client = cluster.client(cluster.cloud.users().demo);
    let template = value!({
        "heat_template_version": "2018-08-31",
        "resources": {
            "disk": {"type": "OS::Cinder::Volume", "properties": {"size": 1}},
            "tier": {"type": "tier.yaml"},
        },
    });
    let files = Map::from([("tier.yaml".to_owned(), TIER.into())]);
    let bundle = Bundle { template: Some(template), files, ..Bundle::default() };
    client.create_stack("web", &StackRequest { bundle, ..StackRequest::default() }).await.expect("accepted");
    let end = end_of(&client, "web", Duration::from_mins(1)).await;
    assert_eq!(end.0, "CREATE_COMPLETE", "{}", end.1);

    let id_of = async |stack: &str| client.stack(stack, false).await.expect("a stack").id().to_owned();
    let rows = client.resources("web", 0, false, &Vec::new()).await.expect("resources");
    let row = |name: &str| rows.iter().find(|row| row.name() == name).expect("a resource");
    let tier = row("tier").physical_id().to_owned();
    let root = id_of("web").await;
    let mut hints = Vec::new();
    collect(&serde_json::from_str(&cluster.cloud.save()).expect("JSON"), &mut hints);
    let of = |resource: &str| hints.iter().find(|hints| hints["heat_resource_name"] == resource).expect("hints");
    let nested = of("server")["heat_stack_name"].as_str().expect("a name").to_owned();
    assert_eq!(id_of(&nested).await, tier);
    let disk = json!({
        "heat_root_stack_id": root, "heat_stack_id": root, "heat_stack_name": "web", "heat_path_in_stack": ["web"],
        "heat_resource_name": "disk", "heat_resource_uuid": of("disk")["heat_resource_uuid"],
    });
    assert_eq!(of("disk"), &disk);
    let server = json!({
        "heat_root_stack_id": root, "heat_stack_id": tier, "heat_stack_name": nested,
        "heat_path_in_stack": ["web", format!("tier,{nested}")], "rack": "r7",
        "heat_resource_name": "server", "heat_resource_uuid": of("server")["heat_resource_uuid"],
    });
    assert_eq!(of("server"), &server);
    cluster.end().await;
}

/// The hints that Nova and Cinder received.
fn collect(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Object(entries) => {
            found.extend(entries.get("_scheduler_hints").filter(|hints| hints.is_object()).cloned());
            entries.values().for_each(|value| collect(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}
