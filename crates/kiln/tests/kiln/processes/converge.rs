//! Updates that first compare the resources with their objects, which others have changed or deleted.

use std::sync::Arc;
use std::time::Duration;

use kiln_client::{Bundle, Client, StackAction, StackRequest};
use kiln_cloud::{Connector, Credentials, Options, SharedClient, StackCloud, TlsOptions};
use kiln_resource::{Cloud as _, CloudRequest, Method};
use kiln_testcloud::{Account, Service, Testcloud};
use kiln_value::{Map, Value, value};

use crate::processes::cluster::{Cluster, Limits, end_of};
use crate::run::Folder;

const STACK: &str = "drifting";

fn request(converge: bool) -> StackRequest {
    let net = value!({"type": "OS::Neutron::Net", "properties": {"name": "mine", "tags": ["a", "b"]}});
    let resources = value!({
        "net": net,
        "gone": {"type": "OS::Neutron::Net"},
        "quiet": {"type": "OS::Neutron::SecurityGroup", "properties": {"description": "as it was"}},
        "server": {"type": "OS::Nova::Server", "properties": {
            "image": "cirros", "flavor": "m1.nano", "name": "mine", "metadata": {"a": "1"}, "user_data": "#!/bin/sh",
            "networks": [{"port": {"get_resource": "port"}}],
        }},
        "lan": {"type": "OS::Neutron::Net"},
        "subnet": {
            "type": "OS::Neutron::Subnet",
            "properties": {"network": {"get_resource": "lan"}, "cidr": "10.76.0.0/24"},
        },
        "port": {
            "type": "OS::Neutron::Port",
            "depends_on": "subnet",
            "properties": {"network": {"get_resource": "lan"}, "security_groups": ["default"]},
        },
        "group": {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": {
            "type": "OS::Neutron::Net", "properties": {"name": "member-%index%"},
        }}},
    });
    request_of(&resources, converge)
}

fn request_of(resources: &Value, converge: bool) -> StackRequest {
    let template = value!({"heat_template_version": "2018-08-31", "resources": (resources.clone())});
    StackRequest {
        bundle: Bundle { template: Some(template), ..Bundle::default() },
        converge: converge.into(),
        ..StackRequest::default()
    }
}

async fn settled(client: &Client, status: &str) {
    let (now, reason) = end_of(client, STACK, Duration::from_mins(1)).await;
    assert_eq!(now, status, "{reason}");
}

/// IDs of objects by the names of their resources, with those of nested stacks.
async fn ids(client: &Client) -> Map {
    let resources = client.resources(STACK, 2, false, &vec![]).await.expect("resources");
    resources.iter().map(|resource| (resource.name().to_owned(), resource.physical_id().into())).collect()
}

/// What another user of the same project does to the objects.
pub(crate) struct Other(Arc<StackCloud>);

impl Other {
    pub(crate) async fn of(cluster: &Cluster) -> Self {
        Self::by(cluster, cluster.cloud.users().demo).await
    }

    async fn by(cluster: &Cluster, account: Account) -> Self {
        let connector = Connector::new(
            Arc::new(SharedClient::new(&TlsOptions::default()).expect("a client")),
            Options::new(cluster.cloud.auth_url().parse().expect("a URL")),
        );
        let Account { user, password, project, .. } = account;
        Self(connector.cloud(&Credentials::password(user, password, project, "Default")).await)
    }

    pub(crate) async fn call(&self, service: &str, method: Method, path: String, body: Option<Value>) {
        let request = CloudRequest::new(service, method, path);
        let request = if let Some(body) = body { request.body(body) } else { request };
        self.0.call(request).await.expect("done");
    }

    async fn rename(&self, network: &Value) {
        let path = format!("/v2.0/networks/{}", network.as_str().expect("an ID"));
        self.call("network", Method::Put, path, Some(value!({"network": {"name": "theirs"}}))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_changed_is_repaired_and_what_they_deleted_is_replaced() {
    let cloud =
        Testcloud::builder().build_time(Duration::from_millis(50)).compute_minor(91).start().await.expect("a cloud");
    let cluster = Cluster::start(cloud, "sqlite", 1, Limits::default()).await;
    let client = cluster.client(cluster.cloud.users().demo);
    let other = Other::of(&cluster).await;
    client.create_stack(STACK, &request(false)).await.expect("accepted");
    settled(&client, "CREATE_COMPLETE").await;
    let first = ids(&client).await;
    let id = |name: &str| first.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let untouched = cluster.cloud.snapshot();

    // Nobody has changed anything: nothing is sent but reads.
    cluster.cloud.journal().clear();
    let same = client.drift(STACK, &[]).await.expect("a comparison");
    // Not everything can be read in the objects.
    assert_eq!((same.str_at("status"), same.get("not_checked")), (Some("NOT_CHECKED"), Some(&1.into())), "{same:?}");
    let folder = Folder::new("drift");
    let url = cluster.url().replace("/v1/%(project_id)s", "");
    let code = |resource: &str| {
        let args = ["stack", "drift", STACK, "--detailed-exitcode", "--resource", resource];
        folder.client(&cluster.cloud, &url, &args).output().expect("it runs").status.code()
    };
    assert_eq!((code("lan"), code("quiet"), code("server")), (Some(0), Some(0), Some(5)));
    client.update_stack(STACK, &request(true)).await.expect("accepted");
    settled(&client, "UPDATE_COMPLETE").await;
    assert_eq!(ids(&client).await, first);
    let writes: Vec<String> = cluster.cloud.journal().list().iter().map(kiln_testcloud::RecordedCall::call).collect();
    let writes: Vec<&String> = writes
        .iter()
        .filter(|call| !call.contains("GET ") && !call.contains("/auth/") && !call.contains("TRUST"))
        .collect();
    assert!(writes.is_empty(), "{writes:?}");
    assert_eq!(untouched.objects["networks"], cluster.cloud.snapshot().objects["networks"]);

    other.rename(&first["net"]).await;
    other.rename(&first["0"]).await;
    let rule = value!({"security_group_rule": {
        "security_group_id": (id("quiet")), "direction": "ingress", "protocol": "tcp",
        "port_range_min": 1, "port_range_max": 65535,
    }});
    other.call("network", Method::Post, "/v2.0/security-group-rules".to_owned(), Some(rule)).await;
    other.call("network", Method::Delete, format!("/v2.0/networks/{}", id("gone")), None).await;
    let metadata = value!({"metadata": {"a": "2"}});
    other.call("compute", Method::Put, format!("/servers/{}/metadata", id("server")), Some(metadata)).await;

    // Without the option, Kiln trusts its own records.
    client.update_stack(STACK, &request(false)).await.expect("accepted");
    settled(&client, "UPDATE_COMPLETE").await;
    assert_eq!(ids(&client).await, first);

    let drift = client.drift(STACK, &[]).await.expect("a comparison");
    assert_eq!(drift.str_at("status"), Some("DRIFTED"));
    let of = |name: &str| {
        let entries = drift.get("resources").and_then(Value::as_list).unwrap_or_default();
        let entry = entries.iter().find(|one| one.str_at("resource_name") == Some(name)).expect("an entry");
        let differences = entry.get("differences").cloned().unwrap_or_default();
        (entry.str_at("drift_status").unwrap_or_default().to_owned(), differences)
    };
    let renamed = |name: &str| {
        let differences = value!([
            {"property": "name", "expected": name, "actual": "theirs", "needs_replacement": false},
        ]);
        ("MODIFIED".to_owned(), differences)
    };
    assert_eq!(of("net"), renamed("mine"));
    assert_eq!(of("0"), renamed("member-0"));
    assert_eq!(of("group").0, "MODIFIED");
    assert_eq!(of("gone").0, "DELETED");
    let server = of("server").1;
    let metadata = server.as_list().and_then(|list| list.first()).and_then(|one| one.str_at("property"));
    assert_eq!(metadata, Some("metadata"));
    assert_eq!(code("net"), Some(2));
    assert_eq!((of("quiet").0, code("quiet")), ("MODIFIED".to_owned(), Some(2)), "an open port");
    for name in ["1", "port", "subnet", "lan"] {
        assert_eq!(of(name), ("IN_SYNC".to_owned(), value!([])), "{name}");
    }
    let one = client.drift(STACK, &["lan".to_owned()]).await.expect("a comparison");
    assert_eq!(one.str_at("status"), Some("IN_SYNC"), "only what was asked for");
    assert!(client.drift(STACK, &["nothing".to_owned()]).await.is_err());
    assert_eq!(ids(&client).await, first, "nothing is changed");

    let plan = client.preview_update(STACK, &request(true), true).await.expect("a plan");
    let names = |list: &str| -> Vec<String> {
        let entries = plan.resources.get(list).and_then(Value::as_list).unwrap_or_default();
        let mut names: Vec<String> =
            entries.iter().filter_map(|e| e.str_at("resource_name").map(str::to_owned)).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names("updated"), ["0", "group", "net", "quiet", "server"], "{plan:?}");
    assert_eq!(names("replaced"), ["gone"]);
    client.update_stack(STACK, &request(true)).await.expect("accepted");
    settled(&client, "UPDATE_COMPLETE").await;
    let second = ids(&client).await;
    let replaced: Vec<&String> =
        second.iter().filter(|(name, id)| first.get(*name) != Some(*id)).map(|(n, _)| n).collect();
    assert_eq!(replaced, ["gone"]);
    let after = cluster.cloud.snapshot();
    let names: Vec<&str> = after.objects["networks"].iter().filter_map(|net| net["name"].as_str()).collect();
    assert!(names.contains(&"mine") && names.contains(&"member-0") && !names.contains(&"theirs"), "{names:?}");
    assert_eq!(after.objects["servers"][0]["metadata"]["a"], "1");
    cluster.end().await;
}

/// The rules of a group without their IDs, in one order.
fn rules(cluster: &Cluster, group: &str) -> Vec<String> {
    let snapshot = cluster.cloud.snapshot();
    let own = snapshot.objects["security_group_rules"].iter().filter(|rule| rule["security_group_id"] == group);
    let text = |rule: &serde_json::Map<String, serde_json::Value>, key: &str| {
        rule[key].as_str().unwrap_or_default().to_owned()
    };
    let mut rules: Vec<String> = own
        .map(|rule| {
            let ports = format!("{}-{}", rule["port_range_min"], rule["port_range_max"]);
            let (direction, version) = (text(rule, "direction"), text(rule, "ethertype"));
            format!("{direction} {version} {} {ports} {}", text(rule, "protocol"), text(rule, "description"))
        })
        .collect();
    rules.sort();
    rules
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_security_groups_are_compared_and_repaired() {
    let cloud = Testcloud::builder().build_time(Duration::from_millis(50)).start().await.expect("a cloud");
    let cluster = Cluster::start(cloud, "sqlite", 1, Limits::default()).await;
    let client = cluster.client(cluster.cloud.users().demo);
    let other = Other::of(&cluster).await;
    let group = |properties: Value| value!({"type": "OS::Neutron::SecurityGroup", "properties": properties});
    // The same rule may be written in several ways, and a group has default rules.
    let web = value!({"name": "web", "rules": [
        {"protocol": "6", "port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": "10.1.2.3/8"},
        {"protocol": "tcp", "port_range_min": 80, "port_range_max": 80, "remote_ip_prefix": "0.0.0.0/0"},
        {"protocol": "icmp", "ethertype": "IPv6", "description": "ping"},
        {"remote_mode": "remote_group_id"},
    ]});
    let closed = value!({"rules": [{"direction": "egress", "protocol": "udp"}]});
    // Rules that are resources belong to these.
    let rule = |group: &str, port: i64| {
        value!({
            "type": "OS::Neutron::SecurityGroupRule",
            "properties": {"security_group": {"get_resource": group}, "protocol": "tcp", "port_range_min": port, "port_range_max": port},
        })
    };
    let resources = value!({
        "web": (group(web)), "closed": (group(closed)), "default": (group(value!({}))),
        "ssh": (rule("default", 22)), "dns": (rule("web", 53)),
    });
    let request = |converge: bool| request_of(&resources, converge);
    client.create_stack(STACK, &request(false)).await.expect("accepted");
    settled(&client, "CREATE_COMPLETE").await;
    let ids = ids(&client).await;
    let id = |name: &str| ids.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let names = ["web", "closed", "default"];
    let before: Vec<_> = names.iter().map(|name| rules(&cluster, &id(name))).collect();
    let compared = client.drift(STACK, &[]).await.expect("a comparison");
    assert_eq!(
        (compared.str_at("status"), compared.get("not_checked")),
        (Some("IN_SYNC"), Some(&0.into())),
        "{compared:?}"
    );

    let delete = async |group: &str, wanted: &str| {
        let rule = {
            let snapshot = cluster.cloud.snapshot();
            let mut own =
                snapshot.objects["security_group_rules"].iter().filter(|rule| rule["security_group_id"] == group);
            let rule =
                own.find(|rule| serde_json::to_string(rule).is_ok_and(|rule| rule.contains(wanted))).expect("a rule");
            rule["id"].as_str().unwrap_or_default().to_owned()
        };
        other.call("network", Method::Delete, format!("/v2.0/security-group-rules/{rule}"), None).await;
    };
    let add = async |group: &str, rule: Value| {
        let mut rule = rule.as_map().cloned().unwrap_or_default();
        rule.insert("security_group_id".to_owned(), group.into());
        let body = value!({"security_group_rule": rule});
        other.call("network", Method::Post, "/v2.0/security-group-rules".to_owned(), Some(body)).await;
    };
    // A rule is changed by its deletion, and by another one.
    delete(&id("web"), "\"port_range_min\":80").await;
    add(&id("web"), value!({"direction": "ingress", "protocol": "tcp", "port_range_min": 1, "port_range_max": 65535}))
        .await;
    add(&id("closed"), value!({"direction": "egress", "ethertype": "IPv4"})).await;
    delete(&id("default"), "IPv4").await;

    let compared = client.drift(STACK, &[]).await.expect("a comparison");
    let entries = compared.get("resources").and_then(Value::as_list).unwrap_or_default();
    for entry in entries {
        if entry.str_at("resource_type") == Some("OS::Neutron::SecurityGroupRule") {
            assert_eq!(entry.str_at("drift_status"), Some("IN_SYNC"), "{entry:?}");
            continue;
        }
        assert_eq!(entry.str_at("drift_status"), Some("MODIFIED"), "{entry:?}");
        let differences = entry.get("differences").and_then(Value::as_list).unwrap_or_default();
        let properties: Vec<_> = differences.iter().filter_map(|one| one.str_at("property")).collect();
        assert_eq!(properties, ["rules"], "{entry:?}");
        assert_ne!(differences[0].get("expected"), differences[0].get("actual"));
    }
    client.update_stack(STACK, &request(true)).await.expect("accepted");
    settled(&client, "UPDATE_COMPLETE").await;
    let after: Vec<_> = names.iter().map(|name| rules(&cluster, &id(name))).collect();
    assert_eq!(after, before);
    assert_eq!(self::ids(&client).await, ids, "no rule was deleted and created again");
    let compared = client.drift(STACK, &[]).await.expect("a comparison");
    assert_eq!(compared.str_at("status"), Some("IN_SYNC"), "{compared:?}");
    cluster.end().await;
}

/// An object is compared with what it showed when it had settled after Kiln wrote it, not with every later look.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_object_showed_when_it_had_settled_is_no_drift() {
    let cloud = Testcloud::builder().build_time(Duration::from_secs(2)).start().await.expect("a cloud");
    let cluster = Cluster::start(cloud, "sqlite", 1, Limits::default()).await;
    let client = cluster.client(cluster.cloud.users().demo);
    let other = Other::of(&cluster).await;
    let request = |name: &str, converge: bool| {
        let properties = value!({
            "image": "cirros", "flavor": "m1.nano", "name": name, "networks": [{"network": "private"}],
        });
        request_of(&value!({"server": {"type": "OS::Nova::Server", "properties": properties}}), converge)
    };
    let rename = async |name: &str| {
        let id = cluster.cloud.snapshot().objects["servers"][0]["id"].as_str().expect("an ID").to_owned();
        let body = value!({"server": {"name": name}});
        other.call("compute", Method::Put, format!("/servers/{id}"), Some(body)).await;
    };
    let compared = async || {
        let compared = client.drift(STACK, &[]).await.expect("a comparison");
        let entry = compared.get("resources").and_then(|list| list.at(0)).cloned().unwrap_or_default();
        let part = |key: &str| entry.get(key).cloned().unwrap_or_default();
        (part("differences"), part("not_applied"))
    };
    let name = || cluster.cloud.snapshot().objects["servers"][0]["name"].as_str().expect("a name").to_owned();

    // The service takes another value while it builds the server.
    client.create_stack(STACK, &request("mine", false)).await.expect("accepted");
    while cluster.cloud.snapshot().objects["servers"].is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    rename("settled").await;
    settled(&client, "CREATE_COMPLETE").await;
    assert_eq!(compared().await, (value!([]), value!(["name"])));
    client.update_stack(STACK, &request("mine", true)).await.expect("accepted");
    settled(&client, "UPDATE_COMPLETE").await;
    assert_eq!(name(), "settled", "it is no drift, which each update would repair");

    // Others change it, and no look makes that the new baseline.
    rename("theirs").await;
    let difference = value!([{
        "property": "name", "expected": "mine", "actual": "theirs", "needs_replacement": false, "baseline": "settled",
    }]);
    for _ in 0..2 {
        assert_eq!(compared().await, (difference.clone(), value!([])));
        let identity = client.stack_identity(STACK).await.expect("a stack");
        client.stack_action(&identity, StackAction::Check).await.expect("accepted");
        settled(&client, "CHECK_COMPLETE").await;
    }
    client.update_stack(STACK, &request("mine", true)).await.expect("accepted");
    settled(&client, "UPDATE_COMPLETE").await;
    assert_eq!((name().as_str(), compared().await), ("mine", (value!([]), value!([]))), "it is repaired");
    // Another value, another baseline.
    client.update_stack(STACK, &request("new", false)).await.expect("accepted");
    settled(&client, "UPDATE_COMPLETE").await;
    rename("settled").await;
    let difference = value!([{
        "property": "name", "expected": "new", "actual": "settled", "needs_replacement": false,
    }]);
    assert_eq!(compared().await, (difference, value!([])));
    cluster.end().await;
}

/// What cannot be updated in place is compared too, and never repaired by a replacement that nobody asked for.
#[tokio::test(flavor = "multi_thread")]
async fn what_only_a_replacement_can_change_is_drift() {
    let cloud = Testcloud::builder().build_time(Duration::from_millis(50)).start().await.expect("a cloud");
    let cluster = Cluster::start(cloud, "sqlite", 1, Limits::default()).await;
    let admin = cluster.client(cluster.cloud.users().admin);
    let gateway = value!({"network": "public", "external_fixed_ips": [{"subnet": "public-subnet"}]});
    let resources = value!({
        "router": {"type": "OS::Neutron::Router", "properties": {"external_gateway_info": gateway}},
        "net": {"type": "OS::Neutron::Net"},
        "port": {"type": "OS::Neutron::Port", "properties": {
            "network": {"get_resource": "net"}, "mac_address": "FA:16:3E:00:00:0A", "no_fixed_ips": true,
        }},
    });
    let request = |converge: bool| request_of(&resources, converge);
    admin.create_stack(STACK, &request(false)).await.expect("accepted");
    settled(&admin, "CREATE_COMPLETE").await;
    let ids = ids(&admin).await;
    let compared = admin.drift(STACK, &[]).await.expect("a comparison");
    assert_eq!(compared.str_at("status"), Some("IN_SYNC"), "{compared:?}");
    let changes = || cluster.cloud.journal().count(|call| call.service == Service::Network && call.method != "GET");
    cluster.cloud.journal().clear();
    admin.update_stack(STACK, &request(true)).await.expect("accepted");
    settled(&admin, "UPDATE_COMPLETE").await;
    assert_eq!(changes(), 0, "the subnet of a gateway, and the notation of an address, are no drift");
    // As an RBAC policy does, which may be a resource of the stack.
    let admins = Other::by(&cluster, cluster.cloud.users().admin).await;
    let net = format!("/v2.0/networks/{}", ids["net"].as_str().expect("an ID"));
    admins.call("network", Method::Put, net, Some(value!({"network": {"shared": true}}))).await;
    let compared = admin.drift(STACK, &[]).await.expect("a comparison");
    assert_eq!(compared.str_at("status"), Some("IN_SYNC"), "{compared:?}");

    let other = admins;
    let port = format!("/v2.0/ports/{}", ids["port"].as_str().expect("an ID"));
    let body = value!({"port": {"mac_address": "fa:16:3e:00:00:0b"}});
    other.call("network", Method::Put, port, Some(body)).await;
    let compared = admin.drift(STACK, &["port".to_owned()]).await.expect("a comparison");
    let entry = compared.get("resources").and_then(|list| list.at(0)).expect("an entry");
    let difference = value!([{
        "property": "mac_address", "expected": "FA:16:3E:00:00:0A", "actual": "fa:16:3e:00:00:0b",
        "needs_replacement": true,
    }]);
    assert_eq!((entry.str_at("drift_status"), entry.get("differences")), (Some("MODIFIED"), Some(&difference)));
    cluster.cloud.journal().clear();
    admin.update_stack(STACK, &request(true)).await.expect("accepted");
    settled(&admin, "UPDATE_COMPLETE").await;
    assert_eq!(changes(), 0);
    cluster.end().await;
}
