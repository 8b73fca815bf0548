//! What the schedulers of Nova and Cinder learn about a stack: `stack_scheduler_hints`, and plug-ins.

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

/// Adds a hint to servers, and removes those that begin with `no_`.
const PLUGIN: &str = "from kiln_plugin import Refused, serve

def hints(hints, resource):
    if resource.type == 'OS::Cinder::Volume':
        return hints
    if hints.get('shelf') == 'full':
        raise Refused('There is no room on this shelf.')
    return {name: hint for name, hint in hints.items() if not name.startswith('no_')} | {
        'tier': f'{resource.stack[\"name\"]}/{resource.name}', 'user': resource.access.user_id}

serve('racks', scheduler_hints=hints)
";

/// The function in docs/plugins.md: it sets the rack of OS::Nova::Server.
fn of_the_manual() -> String {
    let manual = include_str!("../../../../../docs/plugins.md");
    let lines =
        manual.lines().skip_while(|line| !line.starts_with("    def hints")).take_while(|line| !line.is_empty());
    let code: Vec<&str> = lines.map(|line| &line[4..]).collect();
    let code = code.join("\n");
    format!("from kiln_plugin import serve\n{code}\nserve('manual', scheduler_hints=hints)\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_change_the_hints() {
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let folder = tempfile::tempdir().expect("a folder");
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/python");
    let programs = [("racks", PLUGIN), ("manual", &of_the_manual())].map(|(name, code)| {
        let file = folder.path().join(format!("{name}.py"));
        std::fs::write(&file, code).expect("written");
        format!("/usr/bin/env PYTHONPATH={package} python3 {}", file.display())
    });
    let options = format!("[kiln]\nplugins = {}\n", programs.join(", "));
    let cluster = Cluster::start_with(cloud, "sqlite", 1, Limits::default(), &options).await;
    let client = cluster.client(cluster.cloud.users().demo);
    let create = async |name: &str, resources: kiln_value::Value| {
        let template = value!({"heat_template_version": "2018-08-31", "resources": resources});
        let bundle = Bundle { template: Some(template), ..Bundle::default() };
        client.create_stack(name, &StackRequest { bundle, ..StackRequest::default() }).await.expect("accepted");
        end_of(&client, name, Duration::from_mins(1)).await
    };
    let server = |hints: kiln_value::Value| {
        value!({"type": "OS::Nova::Server", "properties": {
            "image": "cirros", "flavor": "m1.tiny", "networks": [{"network": "private"}], "scheduler_hints": hints}})
    };
    let instance = value!({"type": "AWS::EC2::Instance", "properties": {
        "ImageId": "cirros", "InstanceType": "m1.tiny", "NovaSchedulerHints": [{"Key": "rack", "Value": "r8"}]}});
    let disk = value!({"type": "OS::Cinder::Volume", "properties": {"size": 1, "scheduler_hints": {"no_rack": "r1"}}});
    let resources = value!({
        "a": (server(value!({"shelf": 7, "no_rack": "r6"}))), "b": (server(kiln_value::Value::Null)), "c": instance, "disk": disk,
    });
    let end = create("web", resources).await;
    assert_eq!(end.0, "CREATE_COMPLETE", "{}", end.1);
    let mut hints = Vec::new();
    collect(&serde_json::from_str(&cluster.cloud.save()).expect("JSON"), &mut hints);
    let user = hints.iter().find_map(|hints| hints["user"].as_str()).expect("a user").to_owned();
    for wanted in [
        json!({"shelf": 7, "rack": "r7", "tier": "web/a", "user": user}),
        json!({"rack": "r7", "tier": "web/b", "user": user}),
        json!({"rack": "r8", "tier": "web/c", "user": user}),
        json!({"no_rack": "r1"}),
    ] {
        assert!(hints.contains(&wanted), "{wanted}: {hints:?}");
    }

    let end = create("full", value!({"it": (server(value!({"shelf": "full"})))})).await;
    let reason = "Resource CREATE failed: BadRequest: resources.it: There is no room on this shelf.";
    assert_eq!((end.0.as_str(), end.1.as_str()), ("CREATE_FAILED", reason));
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
