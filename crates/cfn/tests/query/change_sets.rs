//! Change sets that create a stack. (`tests/cloud/aws.py` tests those that update one.)

use kiln_cfn::Options;

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
    assert_eq!(code(&import).await, "InvalidParameterValue");
    assert_eq!(code(&[stack, named, ("TemplateBody", TEMPLATE)]).await, "ValidationError", "no stack to update");
    let invalid = TEMPLATE.replace("OS::Heat::Value", "OS::Heat::Nothing");
    assert_eq!(code(&[stack, kind, named, ("TemplateBody", &invalid)]).await, "InvalidParameterValue");
    assert_eq!(app.store.count_change_sets("tenant1").await.expect("a number"), 0, "nothing is stored");
    let made = app.post("CreateChangeSet", &[stack, kind, named, ("TemplateBody", TEMPLATE)]).await;
    let foreign = made.element("Id").replace("tenant1", "tenant2");
    assert_eq!(app.get("DescribeChangeSet", &[("ChangeSetName", &foreign)]).await.status, 404);
}
