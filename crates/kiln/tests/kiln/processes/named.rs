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
    Cluster::in_one_process(cloud, limits).await
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

fn network(name: &str) -> Value {
    value!({"type": "OS::Neutron::Net", "properties": {"name": name}})
}

/// What happens to a create of a network.
fn fault(action: Action, when: When) -> Fault {
    Fault::new(Service::Network, "POST", "/networks$", action).when(when)
}

/// Nobody adopts, repeats or deletes what may be the object of somebody else.
async fn fails_and_deletes_nothing(cluster: &Cluster, client: &Client, stack: &str, left: usize) -> String {
    let (status, reason) = end(client, stack).await;
    assert_eq!(status, "CREATE_FAILED", "{reason}");
    client.delete_stack(stack).await.expect("accepted");
    settled(client, stack, "DELETE_COMPLETE").await;
    assert_eq!(networks(&cluster.cloud.snapshot(), stack).len(), left);
    reason
}

#[tokio::test(flavor = "multi_thread")]
async fn the_object_of_a_lost_response_is_adopted_if_there_is_one() {
    let cluster = cluster().await;
    let client = cluster.client(cluster.cloud.users().demo);
    cluster.cloud.faults().add(fault(Action::LostReply, When::Nth(1)));
    client.create_stack("one", &request(value!({"net": (network("one"))}))).await.expect("accepted");
    settled(&client, "one", "CREATE_COMPLETE").await;
    assert_eq!(networks(&cluster.cloud.snapshot(), "one").len(), 1);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_made_nothing_is_repeated() {
    let cluster = cluster().await;
    let client = cluster.client(cluster.cloud.users().demo);
    cluster.cloud.faults().add(fault(Action::Status(504), When::Nth(1)));
    client.create_stack("none", &request(value!({"net": (network("none"))}))).await.expect("accepted");
    settled(&client, "none", "CREATE_COMPLETE").await;
    assert_eq!(networks(&cluster.cloud.snapshot(), "none").len(), 1);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_objects_with_one_name_one_has_a_mark() {
    let cluster = cluster().await;
    let client = cluster.client(cluster.cloud.users().demo);
    cluster.cloud.faults().add(fault(Action::LostReply, When::Count(2)));
    let two = value!({"first": (network("same")), "second": (network("same"))});
    client.create_stack("two", &request(two)).await.expect("accepted");
    settled(&client, "two", "CREATE_COMPLETE").await;
    let resources = client.resources("two", 0, false, &vec![]).await.expect("resources");
    let mut known: Vec<String> = resources.iter().map(|resource| resource.physical_id().to_owned()).collect();
    let mut made = networks(&cluster.cloud.snapshot(), "same");
    known.sort();
    made.sort();
    assert_eq!(known, made);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_equal_objects_is_not_adopted() {
    let cluster = cluster().await;
    let client = cluster.client(cluster.cloud.users().demo);
    // Somebody else creates the same at the same time.
    cluster.cloud.faults().add(fault(Action::Twin, When::Nth(1)));
    cluster.cloud.faults().add(fault(Action::LostReply, When::Nth(1)));
    client.create_stack("twin", &request(value!({"net": (network("twin"))}))).await.expect("accepted");
    let reason = fails_and_deletes_nothing(&cluster, &client, "twin", 2).await;
    let unknown = "It is unknown whether the service created the object: 2 objects look like it.";
    assert!(reason.contains(unknown), "{reason}");
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_object_with_the_name_is_not_adopted() {
    let cluster = cluster().await;
    let client = cluster.client(cluster.cloud.users().demo);
    // The request does not arrive, and somebody else creates another network with the same name.
    cluster.cloud.faults().add(fault(Action::Status(504), When::Nth(1)));
    client.create_stack("other", &request(value!({"net": (network("other"))}))).await.expect("accepted");
    let sent = || cluster.cloud.journal().count(|call| call.call() == "POST network /networks" && call.status == 504);
    while sent() < 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let foreign = value!({"network": {"name": "other", "admin_state_up": false}});
    Other::of(&cluster).await.call("network", Method::Post, "/v2.0/networks".to_owned(), Some(foreign)).await;
    fails_and_deletes_nothing(&cluster, &client, "other", 1).await;
    cluster.end().await;
}

/// The object of another stack is that of a row, so a create without a response has made nothing, and is repeated.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_another_row_is_not_suspected() {
    let cluster = cluster().await;
    let client = cluster.client(cluster.cloud.users().demo);
    let shared = || request(value!({"net": (network("shared"))}));
    client.create_stack("held", &shared()).await.expect("accepted");
    settled(&client, "held", "CREATE_COMPLETE").await;
    cluster.cloud.faults().add(fault(Action::Status(504), When::Nth(1)));
    client.create_stack("second", &shared()).await.expect("accepted");
    settled(&client, "second", "CREATE_COMPLETE").await;
    let mut known = Vec::new();
    for stack in ["held", "second"] {
        let resources = client.resources(stack, 0, false, &vec![]).await.expect("resources");
        known.extend(resources.iter().map(|resource| resource.physical_id().to_owned()));
    }
    let mut made = networks(&cluster.cloud.snapshot(), "shared");
    known.sort();
    made.sort();
    assert_eq!((known.len(), known), (2, made));
    cluster.end().await;
}

/// A server keeps its mark, which is a tag; other services do not show when an object was created.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_costs_no_request_where_no_time_is_shown() {
    let cluster = cluster().await;
    let client = cluster.client(cluster.cloud.users().demo);
    let scope = |name: &str| value!({"type": "OS::Neutron::AddressScope", "properties": {"name": name}});
    let changes = || -> Vec<String> {
        let calls = cluster.cloud.journal().list().into_iter();
        let changes = calls.filter(|call| call.service != Service::Identity && call.method != "GET");
        let mut changes: Vec<String> = changes.map(|call| call.call()).collect();
        changes.sort();
        changes
    };
    let resources = value!({
        "net": {"type": "OS::Neutron::Net"},
        "subnet": {"type": "OS::Neutron::Subnet", "properties": {
            "network": {"get_resource": "net"}, "cidr": "10.77.0.0/24",
        }},
        "server": {"type": "OS::Nova::Server", "depends_on": "subnet", "properties": {
            "name": "server", "image": "cirros", "flavor": "m1.nano", "networks": [{"network": {"get_resource": "net"}}],
        }},
        "scope": (scope("scope")),
        "policy": {"type": "OS::Neutron::IKEPolicy", "properties": {"name": "policy", "description": "of tests"}},
    });
    cluster.cloud.journal().clear();
    client.create_stack("named", &request(resources)).await.expect("accepted");
    settled(&client, "named", "CREATE_COMPLETE").await;
    let bare = [
        "POST compute /servers",
        "POST network /address-scopes",
        "POST network /networks",
        "POST network /subnets",
        "POST network /vpn/ikepolicies",
    ];
    assert_eq!(changes(), bare);
    let tags = cluster.cloud.snapshot().objects["servers"][0]["tags"].clone();
    let tag = tags[0].as_str().unwrap_or_default().to_owned();
    assert!(tag.starts_with("kiln-"), "{tag}");

    let scopes = |name: &str| -> Vec<String> {
        let snapshot = cluster.cloud.snapshot();
        let named = snapshot.objects["plain_nouns"].iter().filter(|scope| scope["name"] == name);
        named.map(|scope| scope["id"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let id = async |stack: &str| {
        let resources = client.resources(stack, 0, false, &vec![]).await.expect("resources");
        resources[0].physical_id().to_owned()
    };
    let fault = |action, when| Fault::new(Service::Network, "POST", "/address-scopes$", action).when(when);
    let faults = cluster.cloud.faults();

    // An equal object from before is never the one: neither if the create made one, nor if it made none.
    let other = Other::of(&cluster).await;
    for (name, action) in [("made", Action::LostReply), ("not-made", Action::Status(504))] {
        let foreign = value!({"address_scope": {"name": name, "ip_version": 4}});
        other.call("network", Method::Post, "/v2.0/address-scopes".to_owned(), Some(foreign)).await;
        let foreign = scopes(name);
        faults.clear();
        faults.add(fault(action, When::Nth(1)));
        client.create_stack(name, &request(value!({"scope": (scope(name))}))).await.expect("accepted");
        settled(&client, name, "CREATE_COMPLETE").await;
        assert_eq!(scopes(name).len(), 2, "{name}");
        assert_ne!(id(name).await, foreign[0], "{name}");
    }

    // Somebody else creates the same at the same time: neither object is adopted or deleted.
    faults.clear();
    faults.add(fault(Action::Twin, When::Nth(1)));
    faults.add(fault(Action::LostReply, When::Nth(1)));
    client.create_stack("twin", &request(value!({"scope": (scope("twin"))}))).await.expect("accepted");
    let (status, reason) = end(&client, "twin").await;
    assert_eq!(status, "CREATE_FAILED");
    assert!(reason.contains("2 objects look like it."), "{reason}");
    client.delete_stack("twin").await.expect("accepted");
    settled(&client, "twin", "DELETE_COMPLETE").await;
    assert_eq!(scopes("twin").len(), 2);

    // A server is found by its tag among others with its name.
    faults.clear();
    faults.add(Fault::new(Service::Compute, "POST", "/servers$", Action::LostReply).when(When::Nth(1)));
    let server = value!({"type": "OS::Nova::Server", "properties": {
        "name": "server", "image": "cirros", "flavor": "m1.nano", "networks": [{"allocate_network": "none"}],
    }});
    client.create_stack("server", &request(value!({"server": server}))).await.expect("accepted");
    settled(&client, "server", "CREATE_COMPLETE").await;
    let snapshot = cluster.cloud.snapshot();
    let servers: Vec<_> = snapshot.objects["servers"].iter().filter(|server| server["name"] == "server").collect();
    assert_eq!(servers.len(), 2);
    assert_eq!(id("server").await, servers[1]["id"].as_str().unwrap_or_default());
    cluster.end().await;
}
