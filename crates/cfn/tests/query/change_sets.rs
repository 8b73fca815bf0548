//! Change sets that create a stack. (`tests/cloud/aws.py` tests those that update one.)

use std::time::Duration;

use jiff::Timestamp;
use kiln_cfn::Options;
use kiln_resource::{Action, State, Status};
use kiln_store::{Batch, EngineId, Settle, StackRequest};

use crate::support::{App, TEMPLATE};

#[tokio::test]
async fn a_change_set_creates_its_stack() {
    let app = App::new().await;
    let new = |name: &'static str| {
        [("StackName", "app"), ("ChangeSetName", name), ("ChangeSetType", "CREATE"), ("TemplateBody", TEMPLATE)]
    };
    let first = app.post("CreateChangeSet", &new("first")).await;
    let (arn, stack) = (first.element("Id").to_owned(), first.element("StackId").to_owned());
    let second = app.post("CreateChangeSet", &new("second")).await;
    assert_eq!(second.element("StackId"), stack, "change sets of one stack");
    assert_eq!(app.post("CreateChangeSet", &new("second")).await.element("Code"), "AlreadyExistsException");
    assert_eq!(app.get("DescribeStacks", &[("StackName", "app")]).await.element("Code"), "ValidationError");
    let described = app.get("DescribeChangeSet", &[("ChangeSetName", &arn)]).await;
    assert_eq!((described.element("Action"), described.element("LogicalResourceId")), ("Add", "value"));
    assert_eq!((described.element("Status"), described.element("ExecutionStatus")), ("CREATE_COMPLETE", "AVAILABLE"));

    let reader = App::on(app.store.clone(), &["reader"], Options::default());
    assert_eq!(reader.get("DescribeChangeSet", &[("ChangeSetName", &arn)]).await.status, 200);
    for action in ["ExecuteChangeSet", "DeleteChangeSet"] {
        assert_eq!(reader.get(action, &[("ChangeSetName", &arn)]).await.status, 403, "{action}");
    }
    assert_eq!(reader.post("CreateChangeSet", &new("third")).await.status, 403);

    assert_eq!(app.get("ExecuteChangeSet", &[("ChangeSetName", &arn)]).await.status, 200);
    let created = app.get("DescribeStacks", &[("StackName", "app")]).await;
    assert_eq!((created.element("StackId"), created.element("StackStatus")), (stack.as_str(), "CREATE_IN_PROGRESS"));
    let described = app.get("DescribeChangeSet", &[("ChangeSetName", "first"), ("StackName", "app")]).await;
    assert_eq!(described.element("ExecutionStatus"), "EXECUTE_IN_PROGRESS");
    for action in ["ExecuteChangeSet", "DeleteChangeSet"] {
        assert_eq!(app.get(action, &[("ChangeSetName", &arn)]).await.element("Code"), "InvalidChangeSetStatus");
    }
    let listed = app.get("ListChangeSets", &[("StackName", "app")]).await;
    assert!(!listed.text.contains("second"), "obsolete: {}", listed.text);
    let missing = app.get("DescribeChangeSet", &[("ChangeSetName", "second"), ("StackName", "app")]).await;
    assert_eq!((missing.status.as_u16(), missing.element("Code")), (404, "ChangeSetNotFound"));
    assert_eq!(app.get("DeleteChangeSet", &[("ChangeSetName", "second"), ("StackName", "app")]).await.status, 200);
    let busy = [("StackName", "app"), ("ChangeSetName", "x"), ("TemplateBody", TEMPLATE)];
    assert_eq!(app.post("CreateChangeSet", &busy).await.element("Code"), "InvalidAction", "the stack is in progress");
}

#[tokio::test]
async fn an_execution_that_is_rolled_back_has_failed() {
    let app = App::new().await;
    let set = [("StackName", "app"), ("ChangeSetName", "one")];
    let new = [set[0], set[1], ("ChangeSetType", "CREATE"), ("TemplateBody", TEMPLATE)];
    let made = app.post("CreateChangeSet", &new).await;
    assert_eq!(app.get("ExecuteChangeSet", &set).await.status, 200);
    let id = made.element("StackId").rsplit('/').next().and_then(|id| id.parse().ok()).expect("an ID");
    let owner = EngineId(uuid::Uuid::from_u128(1));
    let lease = app.store.claim(owner, Duration::from_mins(1), &[id], 1).await.expect("a lease").remove(0);
    let now = Timestamp::UNIX_EPOCH;
    let ends = |generation, action, status| {
        let (state, reason) = (State::new(action, status), String::new());
        Batch {
            settle: Some(Settle { generation, state, reason, deleted: false, reached: false, now }),
            ..Batch::default()
        }
    };
    let failed =
        Batch { rollback: Some(StackRequest::rollback(1, false, now)), ..ends(1, Action::Create, Status::Failed) };
    for (batch, expected) in
        [(failed, "EXECUTE_IN_PROGRESS"), (ends(2, Action::Rollback, Status::Complete), "EXECUTE_FAILED")]
    {
        app.store.commit(lease, batch).await.expect("an end");
        assert_eq!(app.get("DescribeChangeSet", &set).await.element("ExecutionStatus"), expected);
    }
}

#[tokio::test]
async fn change_sets_are_checked_and_hidden_from_others() {
    let app = App::new().await;
    let stack = ("StackName", "app");
    let kind = ("ChangeSetType", "CREATE");
    let code = async |params: &[(&str, &str)]| app.post("CreateChangeSet", params).await.element("Code").to_owned();
    let named = ("ChangeSetName", "one");
    assert_eq!(code(&[stack, kind, ("TemplateBody", TEMPLATE)]).await, "MissingParameter");
    assert_eq!(code(&[stack, kind, named]).await, "MissingParameter");
    assert_eq!(code(&[stack, kind, ("ChangeSetName", "1_"), ("TemplateBody", TEMPLATE)]).await, "ValidationError");
    let import = [stack, named, ("ChangeSetType", "IMPORT"), ("TemplateBody", TEMPLATE)];
    assert_eq!(code(&import).await, "MissingParameter");
    let other = [stack, named, ("ChangeSetType", "REFACTOR"), ("TemplateBody", TEMPLATE)];
    assert_eq!(code(&other).await, "InvalidParameterValue");
    assert_eq!(code(&[stack, named, ("TemplateBody", TEMPLATE)]).await, "ValidationError", "no stack to update");
    let invalid = TEMPLATE.replace("OS::Heat::Value", "OS::Heat::Nothing");
    assert_eq!(code(&[stack, kind, named, ("TemplateBody", &invalid)]).await, "InvalidParameterValue");
    assert_eq!(app.store.count_plans("tenant1").await.expect("a number"), 0, "nothing is stored");
    let made = app.post("CreateChangeSet", &[stack, kind, named, ("TemplateBody", TEMPLATE)]).await;
    let foreign = made.element("Id").replace("tenant1", "tenant2");
    assert_eq!(app.get("DescribeChangeSet", &[("ChangeSetName", &foreign)]).await.status, 404);
}

/// `aws cloudformation create-change-set --resources-to-import`, for a resource and an ID.
fn object(resource: &'static str, kind: &'static str, id: &'static str) -> [(&'static str, &'static str); 4] {
    [
        ("ResourcesToImport.member.1.LogicalResourceId", resource),
        ("ResourcesToImport.member.1.ResourceType", kind),
        ("ResourcesToImport.member.1.ResourceIdentifier.entry.1.key", "PhysicalResourceId"),
        ("ResourcesToImport.member.1.ResourceIdentifier.entry.1.value", id),
    ]
}

#[tokio::test]
async fn a_change_set_imports_objects_into_a_new_stack() {
    const NET: &str = "heat_template_version: 2018-08-31\nresources:\n  net: {type: OS::Neutron::Net}\n";
    const TWO: &str = "heat_template_version: 2018-08-31\nresources:\n  net: {type: OS::Neutron::Net}\n  more: {type: \
                       OS::Neutron::Net}\n";
    const VALUE: &str = "heat_template_version: 2018-08-31\nresources:\n  net: {type: OS::Heat::RandomString}\n";
    const KIND: (&str, &str) = ("ChangeSetType", "IMPORT");
    let app = App::new().await;
    let import = |name: &'static str, template: &'static str, object: &[(&'static str, &'static str)]| {
        let fields = [("StackName", "app"), ("ChangeSetName", name), KIND, ("TemplateBody", template)];
        [&fields, object].concat()
    };
    let net = object("net", "OS::Neutron::Net", "n-1");
    let refused = app.post("CreateChangeSet", &import("early", NET, &net)).await;
    assert_eq!(refused.element("Code"), "InvalidParameterValue", "enable_stack_adopt is off: {}", refused.text);

    let app = App::adopting(app.store.clone());
    for (name, template, wrong, text) in [
        ("type", NET, object("net", "OS::Nova::Server", "n-1"), "its type is OS::Neutron::Net"),
        ("unknown", NET, object("other", "OS::Neutron::Net", "n-1"), "the template has no such resource"),
        (
            "no-object",
            VALUE,
            object("net", "OS::Heat::RandomString", "n-1"),
            "OS::Heat::RandomString has no object in the cloud",
        ),
    ] {
        let refused = app.post("CreateChangeSet", &import(name, template, &wrong)).await;
        assert!(refused.text.contains(text), "{name}: {}", refused.text);
        assert_eq!((refused.status.as_u16(), refused.element("Code")), (400, "ValidationError"));
    }
    let mixed = app.post("CreateChangeSet", &import("mixed", TWO, &net)).await;
    let mixed = app.get("DescribeChangeSet", &[("ChangeSetName", mixed.element("Id"))]).await;
    assert_eq!((mixed.element("Status"), mixed.element("ExecutionStatus")), ("FAILED", "UNAVAILABLE"));
    assert!(mixed.element("StatusReason").ends_with(": more"), "{}", mixed.text);

    let made = app.post("CreateChangeSet", &import("import", NET, &net)).await;
    let id = made.element("Id").to_owned();
    let shown = app.get("DescribeChangeSet", &[("ChangeSetName", &id)]).await;
    assert_eq!((shown.element("Action"), shown.element("PhysicalResourceId")), ("Import", "n-1"));
    assert_eq!((shown.element("Status"), shown.element("ExecutionStatus")), ("CREATE_COMPLETE", "AVAILABLE"));
    assert_eq!(app.get("ExecuteChangeSet", &[("ChangeSetName", &id)]).await.status, 200);
    let stack = app.get("DescribeStacks", &[("StackName", "app")]).await;
    assert_eq!(stack.element("StackStatus"), "IMPORT_IN_PROGRESS");
    let shown = app.get("DescribeChangeSet", &[("ChangeSetName", &id)]).await;
    assert_eq!(shown.element("ExecutionStatus"), "EXECUTE_IN_PROGRESS");
}

/// Also of a stack that a change set has created: its texts were stored and read again.
#[tokio::test]
async fn a_change_set_without_changes_has_failed() {
    let app = App::new().await;
    let template =
        r#"{"HeatTemplateFormatVersion": "2012-12-12", "Parameters": {"A": {"Type": "String", "Default": "a"}}}"#;
    let set = [("StackName", "app"), ("ChangeSetName", "one")];
    let new = [set[0], set[1], ("ChangeSetType", "CREATE"), ("TemplateBody", template)];
    let made = app.post("CreateChangeSet", &new).await;
    assert_eq!(app.get("ExecuteChangeSet", &set).await.status, 200);
    let id = made.element("StackId").rsplit('/').next().and_then(|id| id.parse().ok()).expect("an ID");
    let owner = EngineId(uuid::Uuid::from_u128(1));
    let lease = app.store.claim(owner, Duration::from_mins(1), &[id], 1).await.expect("a lease").remove(0);
    let (state, reason) = (State::new(Action::Create, Status::Complete), String::new());
    let end = Settle { generation: 1, state, reason, deleted: false, reached: true, now: Timestamp::UNIX_EPOCH };
    app.store.commit(lease, Batch { settle: Some(end), ..Batch::default() }).await.expect("an end");
    let again = [("StackName", "app"), ("ChangeSetName", "two"), ("TemplateBody", template)];
    assert_eq!(app.post("CreateChangeSet", &again).await.status, 200);
    let described = app.get("DescribeChangeSet", &again[..2]).await;
    assert_eq!((described.element("Status"), described.element("ExecutionStatus")), ("FAILED", "UNAVAILABLE"));
    // Nothing has drifted either.
    let reverts = ("DeploymentMode", "REVERT_DRIFT");
    let revert = [("StackName", "app"), ("ChangeSetName", "three"), ("UsePreviousTemplate", "true"), reverts];
    assert_eq!(app.post("CreateChangeSet", &revert).await.status, 200);
    let described = app.get("DescribeChangeSet", &revert[..2]).await;
    assert_eq!((described.element("Status"), described.element("DeploymentMode")), ("FAILED", "REVERT_DRIFT"));
}
