//! Names in templates that mean other objects than before: an image that is uploaded again under its name, a flavor that is
//! created again, a network whose name another one has now.

use std::time::Duration;

use kiln_client::{Bundle, Client, StackRequest};
use kiln_resource::Method;
use kiln_testcloud::{RecordedCall, Testcloud};
use kiln_value::{Value, value};

use crate::cloud_user::CloudUser;
use crate::processes::cluster::{Cluster, Limits, end_of};

const STACK: &str = "renamed";

fn request(image: &str, count: i64, converge: bool) -> StackRequest {
    let server = |name: &str| {
        value!({"type": "OS::Nova::Server", "properties": {
            "name": name, "image": image, "flavor": "tiny", "networks": [{"network": "lan"}],
        }})
    };
    let inner = value!({"heat_template_version": "2018-08-31", "resources": {
        "port": {"type": "OS::Neutron::Port", "properties": {"network": "lan", "name": "inner"}},
    }});
    let template = value!({"heat_template_version": "2018-08-31", "resources": {
        "server": (server("single")),
        "port": {"type": "OS::Neutron::Port", "properties": {"network": "lan", "name": "outer"}},
        "nested": {"type": "inner.yaml"},
        "group": {"type": "OS::Heat::ResourceGroup", "properties": {
            "count": count, "resource_def": (server("member-%index%")),
        }},
    }});
    StackRequest {
        bundle: Bundle {
            template: Some(template),
            files: [("inner.yaml".to_owned(), kiln_value::text::json(&inner).into())].into_iter().collect(),
            ..Bundle::default()
        },
        converge: converge.into(),
        ..StackRequest::default()
    }
}

async fn updated(client: &Client, request: &StackRequest) {
    client.update_stack(STACK, request).await.expect("accepted");
    let (now, reason) = end_of(client, STACK, Duration::from_mins(1)).await;
    assert_eq!(now, "UPDATE_COMPLETE", "{reason}");
}

/// Requests that change something, other than those for tokens.
fn writes(cluster: &Cluster) -> Vec<String> {
    let calls: Vec<String> = cluster.cloud.journal().list().iter().map(RecordedCall::call).collect();
    calls
        .into_iter()
        .filter(|call| !call.starts_with("GET ") && !call.contains("/auth/") && !call.contains("TRUST"))
        .collect()
}

/// The names of the resources in a list of a plan, in order.
fn names(plan: &kiln_value::Map, list: &str) -> Vec<String> {
    let entries = plan.get(list).and_then(Value::as_list).unwrap_or_default();
    let mut names: Vec<String> = entries.iter().filter_map(|e| e.str_at("resource_name").map(str::to_owned)).collect();
    names.sort_unstable();
    names
}

/// The notes of the first entry with this name in a list of resources.
fn notes(entries: &[Value], name: &str, key: Option<&str>) -> Vec<(String, String)> {
    let entry = entries.iter().find(|one| one.str_at("resource_name") == Some(name)).expect("an entry");
    let entry = key.map_or(Some(entry), |key| entry.get(key)).expect("a part");
    let notes = entry.get("names").and_then(Value::as_list).unwrap_or_default();
    let text = |note: &Value, key: &str| note.str_at(key).unwrap_or_default().to_owned();
    notes.iter().map(|note| (text(note, "property"), text(note, "current"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_means_another_object_changes_nothing_until_it_is_asked_for() {
    let cloud = Testcloud::builder().build_time(Duration::from_millis(50)).start().await.expect("a cloud");
    let cluster = Cluster::in_one_process(cloud, Limits::default()).await;
    let client = cluster.client(cluster.cloud.users().demo);
    let admin = CloudUser::of(&cluster.cloud, cluster.cloud.users().admin).await;
    let demo = CloudUser::of(&cluster.cloud, cluster.cloud.users().demo).await;
    let (first_image, first_flavor) = (admin.image("golden").await, admin.flavor("tiny").await);
    let first_network = demo.network("lan").await;
    client.create_stack(STACK, &request("golden", 1, false)).await.expect("accepted");
    let (now, reason) = end_of(&client, STACK, Duration::from_mins(1)).await;
    assert_eq!(now, "CREATE_COMPLETE", "{reason}");
    let before = cluster.cloud.snapshot();

    admin.call("image", Method::Delete, &format!("/v2/images/{first_image}"), None).await;
    admin.call("compute", Method::Delete, &format!("/flavors/{first_flavor}"), None).await;
    let path = format!("/v2.0/networks/{first_network}");
    demo.call("network", Method::Put, &path, Some(value!({"network": {"name": "former"}}))).await;
    let (second_image, second_flavor) = (admin.image("golden").await, admin.flavor("tiny").await);
    let second_network = demo.network("lan").await;
    let all = [("flavor", &second_flavor), ("image", &second_image), ("networks[0].network", &second_network)];
    let all: Vec<(String, String)> = all.map(|(at, id)| (at.to_owned(), id.clone())).into();

    // The unchanged template.
    cluster.cloud.journal().clear();
    let plan = client.preview_update(STACK, &request("golden", 1, false), true).await.expect("a plan").resources;
    assert_eq!(names(&plan, "unchanged"), ["0", "port", "port", "server"], "{plan:?}");
    let unchanged = plan.get("unchanged").and_then(Value::as_list).expect("a list");
    let mut noted = notes(unchanged, "server", Some("change"));
    noted.sort_unstable();
    assert_eq!(noted, all);
    assert_eq!(notes(unchanged, "port", Some("change")), [("network".to_owned(), second_network.clone())]);
    updated(&client, &request("golden", 1, false)).await;
    assert_eq!(writes(&cluster), [""; 0]);
    assert_eq!(before.objects["servers"], cluster.cloud.snapshot().objects["servers"]);

    // A comparison names them too.
    let drift = client.drift(STACK, &[]).await.expect("a comparison");
    let compared = drift.get("resources").and_then(Value::as_list).expect("a list");
    for name in ["server", "0"] {
        let mut noted = notes(compared, name, None);
        noted.sort_unstable();
        assert_eq!(noted, all, "{name}");
    }

    // A repair gives the server its name again, and keeps its image.
    let server = before.objects["servers"].iter().find(|server| server["name"] == "single").expect("the server");
    let path = format!("/servers/{}", server["id"].as_str().expect("an ID"));
    demo.call("compute", Method::Put, &path, Some(value!({"server": {"name": "changed"}}))).await;
    cluster.cloud.journal().clear();
    let plan = client.plan_repair(STACK, &[], false).await.expect("a plan").expect("it has drifted");
    client.execute_plan(plan.id(), plan.digest()).await.expect("it is executed");
    let (now, reason) = end_of(&client, STACK, Duration::from_mins(1)).await;
    assert_eq!(
        (now.as_str(), writes(&cluster)),
        ("UPDATE_COMPLETE", vec!["PUT compute /servers/{id}".to_owned()]),
        "{reason}"
    );
    assert_eq!(demo.image_of("single").await, first_image);

    // Only the new member gets what the names mean now.
    let plan = client.preview_update(STACK, &request("golden", 2, false), true).await.expect("a plan").resources;
    assert_eq!(names(&plan, "added"), ["1"], "{plan:?}");
    assert_eq!(names(&plan, "replaced"), [""; 0], "{plan:?}");
    assert_eq!(names(&plan, "unchanged"), ["0", "port", "port", "server"], "{plan:?}");
    updated(&client, &request("golden", 2, false)).await;
    assert_eq!(demo.image_of("member-0").await, first_image);
    assert_eq!(demo.image_of("member-1").await, second_image);

    // From a name to the ID that it means.
    updated(&client, &request(&second_image, 1, false)).await;
    updated(&client, &request("golden", 1, false)).await;
    assert_eq!(demo.image_of("single").await, first_image);

    // On request.
    let plan = client.preview_update(STACK, &request("golden", 1, true), true).await.expect("a plan").resources;
    assert_eq!(names(&plan, "updated"), ["0", "group", "nested", "server"], "{plan:?}");
    assert_eq!(names(&plan, "replaced"), [""; 0], "no port shows a network that can be changed: {plan:?}");
    updated(&client, &request("golden", 1, true)).await;
    assert_eq!(demo.image_of("single").await, second_image);
    assert_eq!(demo.image_of("member-0").await, second_image);
    cluster.end().await;
}

/// Names that Heat looks up only when it creates an object.
fn late(image: &str, group: &str, converge: bool) -> StackRequest {
    let template = value!({"heat_template_version": "2018-08-31", "resources": {
        "volume": {"type": "OS::Cinder::Volume", "properties": {"size": 1, "image": image}},
        "port": {"type": "OS::Neutron::Port", "properties": {"network": "lan", "security_groups": [group]}},
        "group": {"type": "OS::Neutron::SecurityGroup", "properties": {
            "rules": [{"remote_mode": "remote_group_id", "remote_group_id": group}],
        }},
        "server": {"type": "OS::Nova::Server", "properties": {
            "image": image, "flavor": "tiny", "networks": [{"network": "lan"}], "security_groups": [group],
        }},
    }});
    StackRequest {
        bundle: Bundle { template: Some(template), ..Bundle::default() },
        converge: converge.into(),
        ..StackRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_security_group_that_does_not_exist_fails_as_in_heat() {
    let cloud = Testcloud::builder().start().await.expect("a cloud");
    let cluster = Cluster::in_one_process(cloud, Limits::default()).await;
    let client = cluster.client(cluster.cloud.users().demo);
    CloudUser::of(&cluster.cloud, cluster.cloud.users().demo).await.network("lan").await;
    let template = value!({"heat_template_version": "2018-08-31", "resources": {
        "port": {"type": "OS::Neutron::Port", "properties": {"network": "lan", "security_groups": ["nosuch"]}},
    }});
    let bundle = Bundle { template: Some(template), ..Bundle::default() };
    client.create_stack(STACK, &StackRequest { bundle, ..StackRequest::default() }).await.expect("accepted");
    let (now, reason) = end_of(&client, STACK, Duration::from_mins(1)).await;
    assert_eq!(now, "CREATE_FAILED");
    assert_eq!(
        reason,
        "Resource CREATE failed: EntityNotFound: resources.port: The Resource (nosuch) could not be found."
    );
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_looked_up_late_follows_the_same_rule() {
    let cloud = Testcloud::builder().build_time(Duration::from_millis(50)).start().await.expect("a cloud");
    let cluster = Cluster::in_one_process(cloud, Limits::default()).await;
    let client = cluster.client(cluster.cloud.users().demo);
    let admin = CloudUser::of(&cluster.cloud, cluster.cloud.users().admin).await;
    let demo = CloudUser::of(&cluster.cloud, cluster.cloud.users().demo).await;
    demo.network("lan").await;
    admin.flavor("tiny").await;
    let (first_image, first_group) = (admin.image("golden").await, demo.group("web").await);
    client.create_stack(STACK, &late("golden", "web", false)).await.expect("accepted");
    let (now, reason) = end_of(&client, STACK, Duration::from_mins(1)).await;
    assert_eq!(now, "CREATE_COMPLETE", "{reason}");
    let before = cluster.cloud.snapshot();

    // From a name to its own ID is no change.
    cluster.cloud.journal().clear();
    let by_id = late(&first_image, &first_group, false);
    let plan = client.preview_update(STACK, &by_id, true).await.expect("a plan").resources;
    assert_eq!(names(&plan, "updated"), ["group", "port", "server", "volume"], "{plan:?}");
    for entry in plan.get("updated").and_then(Value::as_list).expect("a list") {
        assert_eq!(entry.get("change").and_then(|change| change.get("properties")), Some(&value!([])), "{entry:?}");
    }
    updated(&client, &by_id).await;
    updated(&client, &late("golden", "web", false)).await;
    assert_eq!(writes(&cluster), [""; 0]);

    // The names mean other objects; the former ones have other names.
    let put = async |user: &CloudUser, service: &str, path: String, body: Value| {
        user.call(service, Method::Put, &path, Some(body)).await;
    };
    admin.call("image", Method::Delete, &format!("/v2/images/{first_image}"), None).await;
    let path = format!("/v2.0/security-groups/{first_group}");
    put(&demo, "network", path, value!({"security_group": {"name": "former"}})).await;
    let (second_image, second_group) = (admin.image("golden").await, demo.group("web").await);
    let image = ("image".to_owned(), second_image.clone());
    let of = |property: &str| (property.to_owned(), second_group.clone());
    let expected = [
        ("group", vec![of("rules[0].remote_group_id")]),
        ("port", vec![of("security_groups[0]")]),
        ("server", vec![image.clone(), of("security_groups[0]")]),
        ("volume", vec![image]),
    ];
    let sorted = |mut notes: Vec<(String, String)>| {
        notes.sort_unstable();
        notes
    };
    cluster.cloud.journal().clear();
    let plan = client.preview_update(STACK, &late("golden", "web", false), true).await.expect("a plan").resources;
    assert_eq!(names(&plan, "unchanged"), ["group", "port", "server", "volume"], "{plan:?}");
    let unchanged = plan.get("unchanged").and_then(Value::as_list).expect("a list");
    // Changes nothing. What the updates before have looked up is remembered for a minute.
    updated(&client, &late("golden", "web", false)).await;
    assert_eq!(writes(&cluster), [""; 0]);
    let drift = client.drift(STACK, &[]).await.expect("a comparison");
    let compared = drift.get("resources").and_then(Value::as_list).expect("a list");
    for (name, noted) in expected {
        assert_eq!(sorted(notes(unchanged, name, Some("change"))), noted, "{name}");
        assert_eq!(sorted(notes(compared, name, None)), noted, "{name}");
        let drift = compared.iter().find(|one| one.str_at("resource_name") == Some(name)).expect("an entry");
        assert_ne!(drift.str_at("drift_status"), Some("MODIFIED"), "{name}: it has what the name meant");
    }
    let after = cluster.cloud.snapshot();
    for noun in ["servers", "volumes", "ports"] {
        assert_eq!(before.objects[noun], after.objects[noun], "{noun}");
    }

    // On request, what can be changed gets what the names mean now.
    updated(&client, &late("golden", "web", true)).await;
    let ports = &cluster.cloud.snapshot().objects["ports"];
    let port = ports.iter().find(|port| port["name"].as_str().is_some_and(|name| name.contains("-port-"))).expect("it");
    assert_eq!(port["security_groups"], serde_json::json!([second_group]));
    cluster.end().await;
}
