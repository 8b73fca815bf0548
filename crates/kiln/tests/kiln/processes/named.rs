//! Objects with a name from the template: how many requests they cost, and what becomes of a create without a response.

use std::time::Duration;

use kiln_client::{Bundle, Client, StackRequest};
use kiln_resource::Method;
use kiln_testcloud::{Action, Fault, Service, Snapshot, Testcloud, When};
use kiln_value::{Map, Value, value};

use crate::processes::cluster::{Cluster, Limits, end_of};
use crate::processes::converge::Other;

fn request(resources: Value) -> StackRequest {
    let template = value!({"heat_template_version": "2018-08-31", "resources": resources});
    StackRequest { bundle: Bundle { template: Some(template), ..Bundle::default() }, ..StackRequest::default() }
}

async fn cluster() -> Cluster {
    let (call_timeout, call_limit) = (Duration::from_millis(800), Duration::from_secs(1));
    let limits = Limits { call_timeout, call_limit, ..Limits::default() };
    let cloud = Testcloud::builder().build_time(Duration::from_millis(50)).start().await.expect("a simulated cloud");
    Cluster::start(cloud, "sqlite", 1, limits).await
}

async fn end(client: &Client, stack: &str) -> (String, String) {
    end_of(client, stack, Duration::from_mins(1)).await
}

async fn settled(client: &Client, stack: &str, status: &str) {
    let (now, reason) = end(client, stack).await;
    assert_eq!(now, status, "{stack}: {reason}");
}

/// The IDs of the networks with this name.
fn networks(snapshot: &Snapshot, name: &str) -> Vec<String> {
    let named = snapshot.objects["networks"].iter().filter(|network| network["name"] == name);
    named.map(|network| network["id"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_costs_no_request() {
    let cluster = cluster().await;
    let client = cluster.client(cluster.cloud.users().demo);
    let mut resources = Map::new();
    for number in 0..10 {
        let net = value!({"type": "OS::Neutron::Net", "properties": {"name": (format!("net-{number}"))}});
        resources.insert(format!("net_{number}"), net);
    }
    let others = value!({
        "subnet": {"type": "OS::Neutron::Subnet", "properties": {
            "name": "subnet", "network": {"get_resource": "net_0"}, "cidr": "10.77.0.0/24",
        }},
        "port": {"type": "OS::Neutron::Port", "depends_on": "subnet", "properties": {
            "name": "port", "network": {"get_resource": "net_0"}, "fixed_ips": [{"subnet": {"get_resource": "subnet"}}],
        }},
        "router": {"type": "OS::Neutron::Router", "properties": {"name": "router"}},
        "group": {"type": "OS::Neutron::SecurityGroup", "properties": {"name": "group", "description": "of tests"}},
        "address": {"type": "OS::Neutron::FloatingIP", "properties": {"floating_network": "public"}},
        "volume": {"type": "OS::Cinder::Volume", "properties": {"name": "volume", "size": 1}},
        "described": {"type": "OS::Cinder::Volume", "properties": {
            "name": "described", "description": "of tests", "size": 1, "metadata": {"a": "b"},
        }},
    });
    resources.extend(others.as_map().cloned().unwrap_or_default());
    cluster.cloud.journal().clear();
    client.create_stack("named", &request(resources.into())).await.expect("accepted");
    settled(&client, "named", "CREATE_COMPLETE").await;

    let calls = cluster.cloud.journal().list().into_iter();
    let changes = calls.filter(|call| call.service != Service::Identity && call.method != "GET");
    let mut changes: Vec<String> = changes.map(|call| call.call()).collect();
    changes.sort();
    let mut bare = vec!["POST network /networks"; 10];
    bare.extend(["POST network /floatingips", "POST network /ports"]);
    bare.extend(["POST network /routers", "POST network /security-groups", "POST network /subnets"]);
    bare.extend(["POST volume /volumes"; 2]);
    bare.sort_unstable();
    assert_eq!(changes, bare);
    let snapshot = cluster.cloud.snapshot();
    assert!(snapshot.objects["networks"].iter().all(|network| network["description"] == ""));
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_object_that_fits_is_adopted() {
    let cluster = cluster().await;
    let client = cluster.client(cluster.cloud.users().demo);
    let net = |name: &str| value!({"type": "OS::Neutron::Net", "properties": {"name": name}});
    let fault = |action, when| Fault::new(Service::Network, "POST", "/networks$", action).when(when);
    let faults = cluster.cloud.faults();

    // The response is lost, and there is one such object.
    faults.add(fault(Action::LostReply, When::Nth(1)));
    client.create_stack("one", &request(value!({"net": (net("one"))}))).await.expect("accepted");
    settled(&client, "one", "CREATE_COMPLETE").await;
    assert_eq!(networks(&cluster.cloud.snapshot(), "one").len(), 1);

    // Nothing was created: the create is repeated.
    faults.clear();
    faults.add(fault(Action::Status(504), When::Nth(1)));
    client.create_stack("none", &request(value!({"net": (net("none"))}))).await.expect("accepted");
    settled(&client, "none", "CREATE_COMPLETE").await;
    assert_eq!(networks(&cluster.cloud.snapshot(), "none").len(), 1);

    // Of two objects with one name one has a mark.
    faults.clear();
    faults.add(fault(Action::LostReply, When::Count(2)));
    let two = value!({"first": (net("same")), "second": (net("same"))});
    client.create_stack("two", &request(two)).await.expect("accepted");
    settled(&client, "two", "CREATE_COMPLETE").await;
    let resources = client.resources("two", 0, false, &vec![]).await.expect("resources");
    let mut known: Vec<String> = resources.iter().map(|resource| resource.physical_id().to_owned()).collect();
    let mut made = networks(&cluster.cloud.snapshot(), "same");
    known.sort();
    made.sort();
    assert_eq!(known, made);

    // Somebody else has created the same at the same time: neither object is adopted, repeated or deleted.
    faults.clear();
    faults.add(fault(Action::Twin, When::Nth(1)));
    faults.add(fault(Action::LostReply, When::Nth(1)));
    client.create_stack("twin", &request(value!({"net": (net("twin"))}))).await.expect("accepted");
    let (status, reason) = end(&client, "twin").await;
    assert_eq!(status, "CREATE_FAILED");
    assert!(
        reason.contains("It is unknown whether the service created the object: 2 objects look like it."),
        "{reason}"
    );
    client.delete_stack("twin").await.expect("accepted");
    settled(&client, "twin", "DELETE_COMPLETE").await;
    assert_eq!(networks(&cluster.cloud.snapshot(), "twin").len(), 2);

    // The request did not arrive, and somebody else has created another network with the same name.
    faults.clear();
    faults.add(fault(Action::Status(504), When::Nth(1)));
    client.create_stack("other", &request(value!({"net": (net("other"))}))).await.expect("accepted");
    let sent = || cluster.cloud.journal().count(|call| call.call() == "POST network /networks" && call.status == 504);
    while sent() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let foreign = value!({"network": {"name": "other", "admin_state_up": false}});
    Other::of(&cluster).await.call("network", Method::Post, "/v2.0/networks".to_owned(), Some(foreign)).await;
    let (status, reason) = end(&client, "other").await;
    assert_eq!(status, "CREATE_FAILED", "{reason}");
    client.delete_stack("other").await.expect("accepted");
    settled(&client, "other", "DELETE_COMPLETE").await;
    assert_eq!(networks(&cluster.cloud.snapshot(), "other").len(), 1);
    cluster.end().await;
}
