//! Updates that first compare the resources with their objects, which others have changed or deleted.

use std::sync::Arc;
use std::time::Duration;

use kiln_client::{Bundle, Client, StackRequest};
use kiln_cloud::{Connector, Credentials, Options, SharedClient, StackCloud, TlsOptions};
use kiln_resource::{Cloud as _, CloudRequest, Method};
use kiln_testcloud::Testcloud;
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
            "image": "cirros", "flavor": "m1.nano", "name": "mine", "metadata": {"a": "1"},
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
    let template = value!({"heat_template_version": "2018-08-31", "resources": resources});
    StackRequest {
        bundle: Bundle { template: Some(template), ..Bundle::default() },
        converge,
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
        let connector = Connector::new(
            Arc::new(SharedClient::new(&TlsOptions::default()).expect("a client")),
            Options::new(cluster.cloud.auth_url().parse().expect("a URL")),
        );
        let demo = cluster.cloud.users().demo;
        Self(connector.cloud(&Credentials::password(demo.user, demo.password, demo.project, "Default")).await)
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
    assert_eq!((same.str_at("status"), same.get("not_checked")), (Some("NOT_CHECKED"), Some(&2.into())), "{same:?}");
    let folder = Folder::new("drift");
    let url = cluster.url().replace("/v1/%(project_id)s", "");
    let code = |resource: &str| {
        let args = ["stack", "drift", STACK, "--detailed-exitcode", "--resource", resource];
        folder.client(&cluster.cloud, &url, &args).output().expect("it runs").status.code()
    };
    assert_eq!((code("lan"), code("quiet")), (Some(0), Some(5)));
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
        let differences = value!([{"property": "name", "expected": name, "actual": "theirs"}]);
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
    // An open port is never in sync.
    assert_eq!(of("quiet"), ("NOT_CHECKED".to_owned(), value!([])));
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
    assert_eq!(names("updated"), ["0", "group", "net", "server"], "{plan:?}");
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
