//! Checks of a stack with the cloud before it is stored, and stacks of a remote orchestration service.

use std::time::Duration;

use kiln_client::{Bundle, Client, StackRequest};
use kiln_testcloud::Testcloud;
use kiln_value::{Map, Value, value};

use crate::processes::cluster::{Cluster, Limits, end_of};

const CHILD: &str = "heat_template_version: 2018-08-31
parameters: {word: {type: string}}
outputs: {said: {value: {get_param: word}}}
";

/// Uses a file, and a type and a default of the environment.
const INNER: &str = "heat_template_version: 2018-08-31
parameters: {number: {type: number}}
resources: {it: {type: 'My::Type'}}
outputs:
  said: {value: {get_attr: [it, said]}}
  note: {value: {get_file: note.txt}}
  number: {value: {get_param: number}}
";

fn request(resource_type: &str, properties: &Value) -> StackRequest {
    let it = value!({"type": resource_type, "properties": properties});
    let template = value!({
        "heat_template_version": "2018-08-31",
        "resources": {"it": it},
        "outputs": {"inner": {"value": {"get_attr": ["it", "outputs"]}}},
    });
    let files = value!({"child.yaml": CHILD, "note.txt": "noted"});
    let environment =
        value!({"resource_registry": {"My::Type": "child.yaml"}, "parameter_defaults": {"word": "default"}});
    let bundle = Bundle {
        template: Some(template),
        files: files.as_map().cloned().unwrap_or_default(),
        environment: environment.as_map().cloned().unwrap_or_default(),
        ..Bundle::default()
    };
    StackRequest { bundle, ..StackRequest::default() }
}

async fn refusal(client: &Client, resource_type: &str, properties: &Value) -> String {
    let mut request = request(resource_type, properties);
    if let Some(template) = request.bundle.template.as_mut().and_then(Value::as_map_mut) {
        template.shift_remove("outputs");
    }
    let refused = client.create_stack("refused", &request).await.expect_err("a refusal");
    refused.to_string()
}

async fn settled(client: &Client, stack: &str) -> String {
    let (status, reason) = end_of(client, stack, Duration::from_mins(1)).await;
    assert!(!status.ends_with("_IN_PROGRESS"), "stuck in {status}");
    if status.ends_with("_COMPLETE") { status } else { reason }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_of_another_service_is_validated_and_gets_files_and_environment() {
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let cluster = Cluster::start(cloud, "sqlite", 1, Limits::default()).await;
    cluster.cloud.add_service("orchestration", &cluster.url());
    let client = cluster.client(cluster.cloud.users().demo);

    let template = |text: &str| value!({"template": text, "parameters": {"number": 7}});
    let wrong = refusal(&client, "OS::Heat::Stack", &template(&INNER.replace("2018-08-31", "2018-08-32"))).await;
    let begin = "Failed validating stack template using Heat endpoint at region \"None\" due to \"ERROR: The template \
                 version is invalid";
    assert!(wrong.contains(begin), "{wrong}");
    let away = value!({"template": INNER, "context": {"region_name": "Away"}});
    let wrong = refusal(&client, "OS::Heat::Stack", &away).await;
    let text = "Cannot establish connection to Heat endpoint at region \"Away\" due to \"publicURL endpoint for \
                orchestration service in Away region not found\"";
    assert!(wrong.contains(text), "{wrong}");
    let wrong = refusal(&client, "OS::Nova::KeyPair", &value!({"name": "k"})).await;
    assert!(wrong.contains("The public_key property is required by the nova API version currently used."), "{wrong}");

    client.create_stack("outer", &request("OS::Heat::Stack", &template(INNER))).await.expect("accepted");
    assert_eq!(settled(&client, "outer").await, "CREATE_COMPLETE");
    let output = client.output("outer", "inner").await.expect("an output");
    let inner: Map = output.get("output_value").and_then(Value::as_map).cloned().unwrap_or_default();
    assert_eq!(Value::Map(inner), value!({"said": "default", "note": "noted", "number": 7}));

    // A snapshot of the outer stack is one of the inner stack too, and a restore brings it back.
    let made = client.create_snapshot("outer", Some("before")).await.expect("accepted");
    assert_eq!(settled(&client, "outer").await, "SNAPSHOT_COMPLETE");
    let changed = value!({"template": INNER, "parameters": {"number": 8}});
    client.update_stack("outer", &request("OS::Heat::Stack", &changed)).await.expect("accepted");
    assert_eq!(settled(&client, "outer").await, "UPDATE_COMPLETE");
    let number = async || {
        let output = client.output("outer", "inner").await.expect("an output");
        output.get("output_value").and_then(|inner| inner.get("number")).cloned().unwrap_or_default()
    };
    assert_eq!(number().await, 8.into());
    let id = made.str_at("id").expect("an ID");
    client.restore_snapshot("outer", id).await.expect("accepted");
    assert_eq!(settled(&client, "outer").await, "RESTORE_COMPLETE");
    assert_eq!(number().await, 7.into());
    let inner = client.resource("outer", "it", &[]).await.expect("a resource").physical_id().to_owned();
    assert_eq!(client.snapshots(&inner).await.expect("a list").len(), 1);

    client.delete_stack("outer").await.expect("accepted");
    assert_eq!(settled(&client, "outer").await, "DELETE_COMPLETE");
    let stacks = client.stacks(&kiln_client::StackFilter::default()).await.expect("stacks");
    assert!(stacks.is_empty(), "{stacks:?}");
    cluster.end().await;
}
