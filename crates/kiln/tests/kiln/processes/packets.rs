//! Resources whose rows are larger than a statement may be on MariaDB (`max_allowed_packet`, 16 MiB by default).
//!
//! ```sh
//! crates/store/tests/databases.sh cargo test -p kiln --test kiln -- --ignored packets
//! ```

use std::time::Duration;

use kiln_client::{Bundle, StackRequest};
use kiln_testcloud::{Action, Fault, Service, Testcloud, When};
use kiln_value::{Map, Value, value};

use crate::processes::cluster::{Cluster, Limits, end_of};

const LIMIT: &str = "max_allowed_packet of 16777216 bytes";

/// Text of a character that has six bytes in JSON.
fn large(kibibytes: usize) -> Value {
    value!({"str_replace": {"template": ("x".repeat(kibibytes)), "params": {"x": ("\u{1}".repeat(1 << 10))}}})
}

/// A network, and resources that do not depend on it.
fn request(others: &Value) -> StackRequest {
    let mut resources = others.as_map().cloned().unwrap_or_default();
    resources.insert("plain".to_owned(), value!({"type": "OS::Neutron::Net", "properties": {"name": "plain"}}));
    let template = value!({"heat_template_version": "2018-08-31", "resources": resources});
    StackRequest { bundle: Bundle { template: Some(template), ..Bundle::default() }, ..StackRequest::default() }
}

fn named(name: Value) -> StackRequest {
    request(&value!({"large": {"type": "OS::Neutron::Net", "properties": {"name": name}}}))
}

async fn cluster() -> Cluster {
    let urls = std::env::var("KILN_TEST_DATABASES").expect("started by crates/store/tests/databases.sh");
    let url = urls.split_whitespace().find(|url| url.starts_with("mysql:")).expect("MariaDB");
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let (call_timeout, call_limit) = (Duration::from_secs(10), Duration::from_secs(12));
    Box::pin(Cluster::start(cloud, url, 1, Limits { call_timeout, call_limit, ..Limits::short() })).await
}

/// The first network takes this long.
fn slow(cluster: &Cluster, time: Duration) {
    let slow = Fault::new(Service::Network, "POST", "/networks$", Action::Delay(time));
    cluster.cloud.faults().add(slow.when(When::Nth(1)));
}

/// The names of the networks that are there through a stack.
fn names(cluster: &Cluster) -> Vec<String> {
    let snapshot = cluster.cloud.snapshot();
    let all = snapshot.objects["networks"].iter().filter_map(|network| network["name"].as_str());
    let mut names: Vec<String> = all.filter(|name| !["public", "private"].contains(name)).map(str::to_owned).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers: crates/store/tests/databases.sh"]
async fn what_mariadb_cannot_store_is_refused_before_it_is_created() {
    let cluster = cluster().await;
    let client = cluster.client(cluster.cloud.users().demo);

    // A create is in flight while the other resource is refused.
    slow(&cluster, Duration::from_millis(700));
    client.create_stack("s", &named(large(3 << 10))).await.expect("accepted");
    let (status, reason) = end_of(&client, "s", Duration::from_mins(1)).await;
    assert_eq!(status, "CREATE_FAILED", "{reason}");
    assert!(reason.contains("resources.large") && reason.contains(LIMIT), "{reason}");
    assert!(names(&cluster).iter().all(|name| name == "plain"), "{:?}", names(&cluster));

    client.update_stack("s", &named("small".into())).await.expect("accepted");
    let (status, reason) = end_of(&client, "s", Duration::from_mins(1)).await;
    assert_eq!(status, "UPDATE_COMPLETE", "{reason}");
    assert_eq!(names(&cluster), ["plain", "small"]);

    // An update, in which a row has the definitions before and after.
    client.update_stack("s", &named(large(3 << 10))).await.expect("accepted");
    let (status, reason) = end_of(&client, "s", Duration::from_mins(1)).await;
    assert_eq!(status, "UPDATE_FAILED", "{reason}");
    assert!(reason.contains("resources.large") && reason.contains(LIMIT), "{reason}");
    assert_eq!(names(&cluster), ["plain", "small"]);
    client.delete_stack("s").await.expect("accepted");
    assert_eq!(end_of(&client, "s", Duration::from_mins(1)).await.0, "DELETE_COMPLETE");
    assert_eq!(names(&cluster), [""; 0]);
    cluster.end().await;
}

/// A group of large values.
fn group(count: i64, value: Value) -> StackRequest {
    request(&value!({
        "quick": {"type": "OS::Neutron::SecurityGroup"},
        "group": {"type": "OS::Heat::ResourceGroup", "depends_on": "quick", "properties": {
            "count": count, "resource_def": {"type": "OS::Heat::Value", "properties": {"value": value}},
        }},
    }))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers: crates/store/tests/databases.sh"]
async fn the_texts_of_a_nested_stack_are_measured_before_it_is_created() {
    let cluster = cluster().await;
    let client = cluster.client(cluster.cloud.users().demo);
    slow(&cluster, Duration::from_millis(700));
    client.create_stack("s", &group(4, large(768))).await.expect("accepted");
    let (status, reason) = end_of(&client, "s", Duration::from_mins(1)).await;
    assert_eq!(status, "CREATE_FAILED", "{reason}");
    assert!(reason.contains("resources.group") && reason.contains(LIMIT), "{reason}");
    assert_eq!(names(&cluster), ["plain"], "the create in flight is recorded");
    client.update_stack("s", &group(1, "small".into())).await.expect("accepted");
    let (status, reason) = end_of(&client, "s", Duration::from_mins(1)).await;
    assert_eq!(status, "UPDATE_COMPLETE", "{reason}");
    assert_eq!(names(&cluster), ["plain"]);
    cluster.end().await;
}

/// Metadata that fits into the rows of four resources, but not together into the data of a snapshot.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers: crates/store/tests/databases.sh"]
async fn a_snapshot_that_mariadb_cannot_store_is_refused_before_anything_is_saved() {
    let cluster = cluster().await;
    let client = cluster.client(cluster.cloud.users().demo);
    let value = |n: u32| (format!("v{n}"), value!({"type": "OS::Heat::TestResource", "metadata": {"m": (large(768))}}));
    let mut resources: Map = (0..4).map(value).collect();
    resources.insert("volume".to_owned(), value!({"type": "OS::Cinder::Volume", "properties": {"size": 1}}));
    client.create_stack("s", &request(&resources.into())).await.expect("accepted");
    assert_eq!(end_of(&client, "s", Duration::from_mins(1)).await.0, "CREATE_COMPLETE");
    let refused = client.create_snapshot("s", None).await.expect_err("too large").to_string();
    assert!(refused.contains(LIMIT), "{refused}");
    assert_eq!(end_of(&client, "s", Duration::from_mins(1)).await.0, "CREATE_COMPLETE");
    assert_eq!(cluster.cloud.journal().count(|call| call.path.starts_with("/backups")), 0);
    cluster.end().await;
}

/// Four outputs of a nested stack that fit into the rows of its values, but not together into the row of its parent.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers: crates/store/tests/databases.sh"]
async fn the_outputs_of_a_nested_stack_that_mariadb_cannot_store_fail_its_resource() {
    let nested = |value: Value| {
        let name = |n: u32| format!("v{n}");
        let resource = |n| (name(n), value!({"type": "OS::Heat::Value", "properties": {"value": (value.clone())}}));
        let output = |n| (name(n), value!({"value": {"get_attr": [(name(n)), "value"]}}));
        let inner = value!({
            "heat_template_version": "2018-08-31",
            "resources": ((0..4).map(resource).collect::<Map>()),
            "outputs": ((0..4).map(output).collect::<Map>()),
        });
        let mut request = request(&value!({
            "quick": {"type": "OS::Neutron::SecurityGroup"},
            "nested": {"type": "nested.yaml", "depends_on": "quick"},
        }));
        request.bundle.files.insert("nested.yaml".to_owned(), kiln_value::text::json(&inner).into());
        request
    };
    let cluster = cluster().await;
    let client = cluster.client(cluster.cloud.users().demo);
    slow(&cluster, Duration::from_millis(700));
    client.create_stack("s", &nested(large(768))).await.expect("accepted");
    let (status, reason) = end_of(&client, "s", Duration::from_mins(1)).await;
    assert_eq!(status, "CREATE_FAILED", "{reason}");
    assert!(reason.contains("resources.nested") && reason.contains(LIMIT), "{reason}");
    assert_eq!(names(&cluster), ["plain"], "the create in flight is recorded");
    client.update_stack("s", &nested("small".into())).await.expect("accepted");
    let (status, reason) = end_of(&client, "s", Duration::from_mins(1)).await;
    assert_eq!(status, "UPDATE_COMPLETE", "{reason}");
    cluster.end().await;
}
