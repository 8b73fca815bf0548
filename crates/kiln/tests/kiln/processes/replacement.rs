//! Replacements in which the old object holds what the new one needs, and their rollbacks.

use std::time::{Duration, Instant};

use kiln_client::{Bundle, Client, StackAction, StackRequest};
use kiln_resource::Method;
use kiln_testcloud::{Snapshot, Testcloud};
use kiln_value::{Map, Value, value};
use serde_json::Value as Json;

use crate::processes::cluster::{Cluster, Limits, end_of};
use crate::processes::converge::Other;

const STACK: &str = "collisions";
const FIRST: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJQ4xYpOrBzN3bYO2pW4WkJ8dTRl6v1bqGJ0uVY5hX0K one@here";

/// A port with a fixed address, a server on another port, two key pairs: one imported, one generated. `number` changes
/// a property of each that requires a replacement; `fails`: the last operation fails.
fn request(number: i64, fails: bool) -> StackRequest {
    let image = if number == 1 { "first" } else { "second" };
    let key = if number == 1 { FIRST.to_owned() } else { FIRST.replace("JQ4x", "JQ5x") };
    let mac = format!("fa:16:3e:00:00:0{number}");
    let resources = value!({
        "net": {"type": "OS::Neutron::Net"},
        "subnet": {
            "type": "OS::Neutron::Subnet",
            "properties": {"network": {"get_resource": "net"}, "cidr": "10.75.0.0/24"},
        },
        "addressed": {"type": "OS::Neutron::Port", "properties": {
            "network": {"get_resource": "net"},
            "fixed_ips": [{"subnet": {"get_resource": "subnet"}, "ip_address": "10.75.0.77"}],
            "mac_address": mac,
        }},
        "port": {
            "type": "OS::Neutron::Port",
            "depends_on": "subnet",
            "properties": {"network": {"get_resource": "net"}},
        },
        "server": {"type": "OS::Nova::Server", "properties": {
            "image": "cirros", "flavor": "m1.nano", "user_data_format": "RAW", "user_data": image,
            "networks": [{"port": {"get_resource": "port"}}],
        }},
        "imported": {"type": "OS::Nova::KeyPair", "properties": {"name": "imported", "public_key": key}},
        "generated": {
            "type": "OS::Nova::KeyPair",
            "properties": {"name": "generated", "save_private_key": (number == 1)},
        },
        "last": {
            "type": "OS::Heat::TestResource",
            "depends_on": ["addressed", "server", "imported", "generated"],
            "properties": {"fail": fails, "value": image},
        },
    });
    let template = value!({"heat_template_version": "2018-08-31", "resources": resources});
    StackRequest {
        bundle: Bundle { template: Some(template), ..Bundle::default() },
        disable_rollback: Some(false),
        ..StackRequest::default()
    }
}

async fn settled(client: &Client, status: &str) {
    let (now, reason) = end_of(client, STACK, Duration::from_mins(1)).await;
    assert_eq!(now, status, "{reason}");
}

async fn ids(client: &Client) -> Map {
    let resources = client.resources(STACK, 0, false, &vec![]).await.expect("resources");
    resources.iter().map(|resource| (resource.name().to_owned(), resource.physical_id().into())).collect()
}

fn find<'a>(snapshot: &'a Snapshot, kind: &str, key: &str, id: &str) -> &'a serde_json::Map<String, Json> {
    let found = snapshot.objects[kind].iter().find(|object| object[key] == id);
    found.unwrap_or_else(|| panic!("no {kind} {id}"))
}

/// Checks what the objects of the stack hold, and that there are no other objects.
fn holds(cluster: &Cluster, ids: &Map, key: &str) {
    let snapshot = cluster.cloud.snapshot();
    let id = |name: &str| ids.get(name).and_then(Value::as_str).unwrap_or_default();
    let addressed = find(&snapshot, "ports", "id", id("addressed"));
    assert_eq!(addressed["fixed_ips"][0]["ip_address"], "10.75.0.77", "{addressed:?}");
    let port = find(&snapshot, "ports", "id", id("port"));
    assert_eq!(port["device_id"], id("server"), "{port:?}");
    assert_eq!(snapshot.count("servers"), 1);
    assert_eq!(snapshot.count("keypairs"), 2);
    let imported = find(&snapshot, "keypairs", "name", "imported");
    assert_eq!(imported["public_key"].as_str().map(str::trim), Some(key));
    find(&snapshot, "keypairs", "name", "generated");
}

async fn cluster(build_time: Duration) -> Cluster {
    let cloud = Testcloud::builder().build_time(build_time).compute_minor(91).start().await.expect("a simulated cloud");
    Cluster::start(cloud, "sqlite", 1, Limits::default()).await
}

/// The new server takes the port when it is built, which is after the cancel.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_server_gets_its_port_back_from_one_that_is_being_built() {
    let cluster = cluster(Duration::from_secs(6)).await;
    let client = cluster.client(cluster.cloud.users().demo);
    client.create_stack(STACK, &request(1, false)).await.expect("accepted");
    settled(&client, "CREATE_COMPLETE").await;
    let first = ids(&client).await;

    client.update_stack(STACK, &request(2, false)).await.expect("accepted");
    let start = Instant::now();
    while matches!(ids(&client).await.get("server"), None | Some(Value::Null))
        || cluster.cloud.snapshot().count("servers") < 2
    {
        assert!(start.elapsed() < Duration::from_mins(1), "no second server");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    client.stack_action(STACK, StackAction::CancelUpdate).await.expect("accepted");
    settled(&client, "ROLLBACK_COMPLETE").await;
    let back = ids(&client).await;
    assert_eq!(back.get("server"), first.get("server"));
    holds(&cluster, &back, FIRST);
    // A detach that is repeated while Nova executes it takes the port from the server that got it.
    let detached = cluster
        .cloud
        .journal()
        .count(|call| call.status == 202 && call.method == "DELETE" && call.path.contains("os-interface"));
    assert_eq!(detached, 2);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_objects_release_what_new_ones_need() {
    let cluster = cluster(Duration::from_millis(50)).await;
    let client = cluster.client(cluster.cloud.users().demo);
    client.create_stack(STACK, &request(1, false)).await.expect("accepted");
    settled(&client, "CREATE_COMPLETE").await;
    let first = ids(&client).await;
    holds(&cluster, &first, FIRST);
    let generated =
        |cluster: &Cluster| find(&cluster.cloud.snapshot(), "keypairs", "name", "generated")["public_key"].clone();
    let made = generated(&cluster);

    // The update fails at its end, when all replacements exist.
    client.update_stack(STACK, &request(2, true)).await.expect("accepted");
    settled(&client, "ROLLBACK_COMPLETE").await;
    let back = ids(&client).await;
    assert_eq!(back.get("server"), first.get("server"));
    holds(&cluster, &back, FIRST);
    assert_eq!(generated(&cluster), made);

    client.update_stack(STACK, &request(2, false)).await.expect("accepted");
    settled(&client, "UPDATE_COMPLETE").await;
    let second = ids(&client).await;
    assert_ne!(second.get("server"), first.get("server"));
    assert_ne!(second.get("addressed"), first.get("addressed"));
    holds(&cluster, &second, &FIRST.replace("JQ4x", "JQ5x"));
    assert_ne!(generated(&cluster), made);

    client.delete_stack(STACK).await.expect("accepted");
    settled(&client, "DELETE_COMPLETE").await;
    assert_eq!(cluster.cloud.snapshot().count("keypairs"), 0);
    cluster.end().await;
}

/// Nova detaches no port from a suspended server, and will not as long as it is suspended.
#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_server_that_cannot_release_its_port_fails_with_novas_reason() {
    let cluster = cluster(Duration::from_millis(50)).await;
    let client = cluster.client(cluster.cloud.users().demo);
    let on_a_port = |image: &str| {
        let resources = value!({
            "net": {"type": "OS::Neutron::Net"},
            "subnet": {
                "type": "OS::Neutron::Subnet",
                "properties": {"network": {"get_resource": "net"}, "cidr": "10.78.0.0/24"},
            },
            "port": {
                "type": "OS::Neutron::Port",
                "depends_on": "subnet",
                "properties": {"network": {"get_resource": "net"}},
            },
            "server": {"type": "OS::Nova::Server", "properties": {
                "image": "cirros", "flavor": "m1.nano", "user_data_format": "RAW", "user_data": image,
                "networks": [{"port": {"get_resource": "port"}}],
            }},
        });
        let template = value!({"heat_template_version": "2018-08-31", "resources": resources});
        StackRequest { bundle: Bundle { template: Some(template), ..Bundle::default() }, ..StackRequest::default() }
    };
    client.create_stack(STACK, &on_a_port("first")).await.expect("accepted");
    settled(&client, "CREATE_COMPLETE").await;
    let server = cluster.cloud.snapshot().objects["servers"][0]["id"].as_str().unwrap_or_default().to_owned();
    let suspend = Some(value!({"suspend": null}));
    Other::of(&cluster).await.call("compute", Method::Post, format!("/servers/{server}/action"), suspend).await;
    while cluster.cloud.snapshot().objects["servers"][0]["status"] != "SUSPENDED" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    client.update_stack(STACK, &on_a_port("second")).await.expect("accepted");
    let (status, reason) = end_of(&client, STACK, Duration::from_secs(20)).await;
    assert_eq!(status, "UPDATE_FAILED", "{reason}");
    assert!(reason.contains("while it is in vm_state suspended"), "{reason}");
    cluster.end().await;
}
