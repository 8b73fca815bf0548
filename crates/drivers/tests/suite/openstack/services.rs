//! What the sweep does not show of Manila, Mistral, Magnum, Trove and Zun, on the simulated cloud.

use kiln_resource::Received;
use kiln_testcloud::{Action, Fault, Service};
use kiln_value::{Value, value};

use crate::openstack::ground::Ground;
use crate::resource::{Outcome, Resource};

fn workflow(kind: &str) -> Value {
    value!({"type": kind, "input": {"a": 1, "b": 2}, "tasks": [{"name": "t", "action": "std.noop"}]})
}

async fn send(resource: &Resource, message: &Value) -> Result<Received, kiln_resource::Failure> {
    resource.driver().receive(&resource.context(), message).await
}

#[tokio::test]
async fn a_signal_starts_one_execution_of_a_workflow() {
    let ground = Ground::simulated().await;
    let mut flow = ground.made("OS::Mistral::Workflow", "flow", workflow("direct")).await;
    let message = value!({"input": {"b": 3}, "params": {"env": {"x": "y"}}});
    let received = send(&flow, &message).await.unwrap();
    // The result was not stored, and the message is delivered again.
    assert_eq!(send(&flow, &message).await.unwrap().data, received.data);
    flow.facts.data.extend(received.data);
    flow.facts.data.extend(send(&flow, &message).await.unwrap().data);
    let executions = flow.attribute("executions").await;
    let executions = executions.as_list().unwrap();
    assert_eq!(executions.len(), 2);
    assert_ne!(executions[0].str_at("id"), executions[1].str_at("id"));
    assert_eq!(executions[0].str_at("workflow_name"), Some(flow.id()));
    assert_eq!(executions[0].get("input"), Some(&value!({"a": 1, "b": 3})));
    for (message, text) in [
        (value!({"input": {"c": 1}}), "Signal data error: Unknown input c"),
        (value!({"input": "c"}), "Signal data error: Input in signal data must be a map, find a <class 'str'>"),
        (value!({"params": [1]}), "Signal data error: Params must be a map, find a <class 'list'>"),
    ] {
        assert_eq!(send(&flow, &message).await.unwrap_err().message, text);
    }
    flow.delete().await;
    ground.assert_clean();
}

#[tokio::test]
async fn a_workflow_with_the_name_of_another_is_refused() {
    let ground = Ground::simulated().await;
    let mut given = workflow("direct");
    given.as_map_mut().unwrap().insert("name".to_owned(), "given".into());
    let mut first = ground.made("OS::Mistral::Workflow", "first", given.clone()).await;
    let mut second = ground.resource("OS::Mistral::Workflow", "second");
    let failure = second.create(given).await.unwrap_err();
    assert!(failure.message.contains("Duplicate entry for WorkflowDefinition: given"), "{failure}");
    second.delete().await;
    first.check().await.unwrap();
    first.delete().await;
    ground.assert_clean();
}

#[tokio::test]
async fn an_external_resource_keeps_what_its_workflows_return() {
    let ground = Ground::simulated().await;
    let mut flow = ground.made("OS::Mistral::Workflow", "flow", workflow("direct")).await;
    let given = |input: Value| {
        let run = value!({"workflow": (flow.id())});
        value!({
            "actions": {"CREATE": (run.clone()), "UPDATE": run}, "input": input,
            "replace_on_change_inputs": ["kind"], "always_update": true,
        })
    };
    let (first, second) = (value!({"kind": "k", "resource_id": "r1"}), value!({"kind": "k", "more": "m"}));
    let mut resource = ground.made("OS::Mistral::ExternalResource", "it", given(first)).await;
    assert_eq!(resource.id(), "r1");
    assert_eq!(resource.update(given(second)).await.unwrap(), Outcome::Updated);
    let output = resource.attribute("output").await;
    assert_eq!(output.as_str(), Some(r#"{"kind": "k", "resource_id": "r1", "more": "m"}"#));
    assert_eq!(resource.update(given(value!({"kind": "other"}))).await.unwrap(), Outcome::Replaced);
    assert!(resource.driver().always_updates(&resource.facts.properties));

    let mut broken = ground.resource("OS::Mistral::ExternalResource", "broken");
    let failure = broken.create(given(value!({"error": "no room"}))).await.unwrap_err();
    assert_eq!(failure.message, "no room");
    resource.delete().await;
    flow.delete().await;
}

#[tokio::test]
async fn failed_builds_say_why() {
    let ground = Ground::simulated().await;
    let cloud = ground.testcloud.as_ref().unwrap();
    let template = value!({"image": "cirros", "external_network": "public", "coe": "kubernetes"});
    let template = ground.made("OS::Magnum::ClusterTemplate", "template", template).await;
    for (kind, service, path, given, text) in [
        (
            "OS::Manila::Share",
            Service::Share,
            "/shares$",
            value!({"share_protocol": "NFS", "size": 1}),
            "Went to status error due to \"Error during creation of share \"ID\"\"",
        ),
        (
            "OS::Magnum::Cluster",
            Service::ContainerInfra,
            "/clusters$",
            value!({"cluster_template": (template.id())}),
            "Went to status CREATE_FAILED due to \"Failed to create Cluster 'it' - None\"",
        ),
        (
            "OS::Trove::Instance",
            Service::Database,
            "/instances$",
            value!({"flavor": "m1.nano", "size": 1}),
            "Went to status ERROR due to \"The last operation for the database instance failed due to an error.\"",
        ),
        (
            "OS::Zun::Container",
            Service::Container,
            "/containers$",
            value!({"image": "cirros"}),
            "Went to status Error due to \"Error in creating container 'it' - None\"",
        ),
    ] {
        cloud.faults().add(Fault::new(service, "POST", path, Action::FailBuild));
        let mut resource = ground.resource(kind, "it");
        let failure = resource.create(given).await.unwrap_err();
        assert_eq!(failure.message, text.replace("ID", resource.id()));
        cloud.faults().clear();
        resource.delete().await;
    }
}

#[tokio::test]
async fn attributes_of_the_services() {
    let ground = Ground::simulated().await;
    let given = value!({"share_protocol": "NFS", "size": 1, "name": "given"});
    let mut share = ground.made("OS::Manila::Share", "share", given).await;
    let path = value!([(format!("10.0.0.1:/shares/{}", share.id()))]);
    assert_eq!(share.attribute("export_locations").await, path);
    assert_eq!(share.attribute("status").await.as_str(), Some("available"));
    share.delete().await;
    let instances = value!([{"flavor": "m1.nano", "volume_size": 1}, {"flavor": "m1.nano", "volume_size": 1}]);
    let given = value!({"datastore_type": "mysql", "datastore_version": "8.0", "instances": instances});
    let mut cluster = ground.made("OS::Trove::Cluster", "cluster", given).await;
    assert_eq!(cluster.attribute("instances").await.as_list().map(<[Value]>::len), Some(2));
    cluster.delete().await;
    ground.assert_clean();
}

#[tokio::test]
async fn what_the_services_would_refuse_is_refused_before() {
    let ground = Ground::simulated().await;
    let user = value!({"name": "user", "password": "secret", "databases": ["two"]});
    for (kind, given, text) in [
        (
            "OS::Trove::Instance",
            value!({"flavor": "42", "size": 1, "databases": [{"name": "one"}], "users": [user]}),
            "Database ['two'] specified for user does not exist in databases for resource it.",
        ),
        (
            "OS::Trove::Instance",
            value!({"flavor": "42", "size": 1, "datastore_version": "5.7"}),
            "Not allowed - datastore_version without datastore_type.",
        ),
        (
            "OS::Mistral::Workflow",
            workflow("reverse"),
            "'task_name' is not assigned in 'params' in case of reverse type workflow.",
        ),
        (
            "OS::Zun::Container",
            value!({"image": "i", "restart_policy": "often"}),
            "restart_policy \"often\" is invalid. Valid values are \"no\", \"on-failure[:max-retry]\", \
             \"always\", and \"unless-stopped\".",
        ),
        ("OS::Manila::ShareNetwork", value!({"nova_network": "n"}), "Nova network is no longer supported"),
    ] {
        let mut resource = ground.resource(kind, "it");
        resource.give(given).await.unwrap();
        assert_eq!(resource.validate().unwrap_err().text, text);
    }
    let mut resource = ground.resource("OS::Trove::Instance", "it");
    let given = value!({"flavor": "42", "size": 1, "datastore_type": "mysql", "datastore_version": "4"});
    resource.give(given).await.unwrap();
    assert!(resource.driver().validates_in_cloud(&resource.facts));
    assert_eq!(
        resource.driver().validate_in_cloud(&resource.context()).await.unwrap_err().text,
        "Datastore version 4 for datastore type mysql is not valid. Allowed versions are 5.7, 8.0."
    );
}
