//! Each action, in XML and JSON.

use async_trait::async_trait;
use http::StatusCode;
use kiln_cfn::Options;
use kiln_service::{ReadError, TemplateReader};
use serde_json::json;

use crate::support::{App, TEMPLATE};

/// The keys of an object.
fn keys(value: &serde_json::Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// A web with one template.
struct Web;

#[async_trait]
impl TemplateReader for Web {
    async fn read(&self, url: &str, _: usize) -> Result<String, ReadError> {
        match url {
            "https://example.org/t" => Ok(TEMPLATE.to_owned()),
            _ => Err(ReadError::Address("inside".to_owned())),
        }
    }
}

#[tokio::test]
async fn templates_are_read_from_urls() {
    let options = Options::default();
    let web = std::sync::Arc::new(Web);
    let app = App::with_templates(App::new().await.store, &["member", "reader"], options, Some(web));
    let good = ("TemplateURL", "https://example.org/t");
    assert_eq!(app.post("ValidateTemplate", &[good]).await.element("Description"), "one &amp; &lt;two&gt;");
    let made = app.post("CreateStack", &[("StackName", "app"), good]).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.text);
    let refused = app.post("CreateStack", &[("StackName", "b"), ("TemplateURL", "http://inside/")]).await;
    assert_eq!(refused.element("Code"), "InvalidParameterValue");
    assert!(refused.element("Message").ends_with("Could not retrieve template: the address of inside is not allowed"));
}

#[tokio::test]
async fn a_stack_is_created_and_described() {
    let app = App::new().await;
    let params = [
        ("StackName", "app"),
        ("TemplateBody", TEMPLATE),
        ("Parameters.member.1.ParameterKey", "key"),
        ("Parameters.member.1.ParameterValue", "v"),
        ("TimeoutInMinutes", "7"),
        ("OnFailure", "ROLLBACK"),
        ("Tags.member.1.Key", "team"),
        ("Tags.member.1.Value", "a"),
        ("Capabilities.member.1", "CAPABILITY_IAM"),
    ];
    let created = app.post("CreateStack", &params).await;
    assert_eq!(created.kind, "application/xml");
    let arn = created.element("StackId").to_owned();
    assert!(arn.starts_with("arn:openstack:heat::tenant1:stacks/app/"), "{arn}");
    assert!(created.text.starts_with("<CreateStackResponse><CreateStackResult><StackId>"), "{}", created.text);
    assert!(created.element("RequestId").starts_with("req-"));

    for named in ["app", arn.as_str(), arn.rsplit('/').next().unwrap()] {
        let xml = app.get("DescribeStacks", &[("StackName", named)]).await;
        assert_eq!(xml.element("Description"), "one &amp; &lt;two&gt;");
        assert_eq!(xml.element("DisableRollback"), "false", "a boolean for boto3");
        assert_eq!(xml.element("OutputValue"), "{\"a.b\": [\"v\", \"&lt;\"]}");
        let parameter = "<ParameterKey>key</ParameterKey><ParameterValue>v</ParameterValue>";
        assert!(xml.element("Parameters").contains(parameter), "{}", xml.text);
        assert_eq!((xml.element("TimeoutInMinutes"), xml.element("StackStatus")), ("7", "CREATE_IN_PROGRESS"));
        assert!(!xml.text.contains("LastUpdatedTime"), "a time that cannot be read: {}", xml.text);
    }
    let described = app.get("DescribeStacks", &[("ContentType", "JSON")]).await;
    assert_eq!(described.kind, "application/json");
    let stack = &described.json()["DescribeStacksResponse"]["DescribeStacksResult"]["Stacks"][0];
    assert_eq!(stack["CreationTime"], "2026-11-20T06:52:45Z");
    assert_eq!(
        stack["Outputs"],
        json!([{"OutputKey": "out", "OutputValue": {"a.b": ["v", "<"]}, "Description": "it"}])
    );
    assert_eq!(stack["Tags"], json!([{"Key": "team", "Value": "a"}]));
    assert_eq!(stack["DisableRollback"], false);
}

#[tokio::test]
async fn lists_and_details_have_the_keys_of_the_reference() {
    let app = App::new().await;
    app.create("app").await;
    let json = ("ContentType", "JSON");
    let of = |answer: crate::support::Answer, action: &str| {
        answer.json()[format!("{action}Response")][format!("{action}Result")].clone()
    };
    let listed = of(app.get("ListStacks", &[json]).await, "ListStacks");
    let summary = &listed["StackSummaries"][0];
    assert_eq!(summary["TemplateDescription"], "one & <two>");
    let resources = of(app.get("ListStackResources", &[("StackName", "app"), json]).await, "ListStackResources");
    let expected = [
        "LastUpdatedTimestamp",
        "LogicalResourceId",
        "PhysicalResourceId",
        "ResourceStatus",
        "ResourceStatusReason",
        "ResourceType",
    ];
    assert_eq!(keys(&resources["StackResourceSummaries"][0]), expected);
    assert_eq!(resources["StackResourceSummaries"][0]["ResourceStatus"], "INIT_COMPLETE");
    let one = [("StackName", "app"), ("LogicalResourceId", "value"), json];
    let detail = of(app.get("DescribeStackResource", &one).await, "DescribeStackResource");
    let expected = [
        "Description",
        "LastUpdatedTimestamp",
        "LogicalResourceId",
        "Metadata",
        "PhysicalResourceId",
        "ResourceStatus",
        "ResourceStatusReason",
        "ResourceType",
        "StackId",
        "StackName",
    ];
    assert_eq!(keys(&detail["StackResourceDetail"]), expected);
    let xml = app.get("DescribeStackResource", &one[..2]).await;
    assert_eq!(xml.element("Metadata"), "{}", "agents read JSON in a text");
    let all = of(app.get("DescribeStackResources", &[("StackName", "app"), json]).await, "DescribeStackResources");
    assert_eq!(all["StackResources"][0]["Timestamp"], "2026-11-20T06:52:45Z");
    let none = app.get("DescribeStackResources", &[("StackName", "app"), ("LogicalResourceId", "no"), json]).await;
    assert_eq!(of(none, "DescribeStackResources")["StackResources"], json!([]));
    let events = of(app.get("DescribeStackEvents", &[("StackName", "app"), json]).await, "DescribeStackEvents");
    let expected = [
        "EventId",
        "LogicalResourceId",
        "PhysicalResourceId",
        "ResourceProperties",
        "ResourceStatus",
        "ResourceStatusReason",
        "ResourceType",
        "StackId",
        "StackName",
        "Timestamp",
    ];
    assert_eq!(keys(&events["StackEvents"][0]), expected);
    assert_eq!(events, of(app.get("DescribeStackEvents", &[json]).await, "DescribeStackEvents"));
    let template = of(app.get("GetTemplate", &[("StackName", "app"), json]).await, "GetTemplate");
    assert_eq!(template["TemplateBody"], serde_json::from_str::<serde_json::Value>(TEMPLATE).unwrap());
}

#[tokio::test]
async fn an_update_replaces_the_parameters_unless_they_keep_their_value() {
    let app = App::new().await;
    app.create("app").await;
    let update = async |params: &[(&str, &str)]| {
        let params: Vec<_> = [("StackName", "app")].iter().chain(params).copied().collect();
        let answer = app.post("UpdateStack", &params).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let described = app.get("DescribeStacks", &[("StackName", "app"), ("ContentType", "JSON")]).await.json();
        let stack = described["DescribeStacksResponse"]["DescribeStacksResult"]["Stacks"][0].clone();
        assert_eq!(stack["StackStatus"], "UPDATE_IN_PROGRESS");
        let parameters = stack["Parameters"].as_array().unwrap().clone();
        let value = |key: &str| {
            let found = parameters.iter().find(|parameter| parameter["ParameterKey"] == key).unwrap();
            found["ParameterValue"].as_str().unwrap().to_owned()
        };
        (value("key"), value("other"))
    };
    let both = [
        ("TemplateBody", TEMPLATE),
        ("Parameters.member.1.ParameterKey", "key"),
        ("Parameters.member.1.ParameterValue", "1"),
        ("Parameters.member.2.ParameterKey", "other"),
        ("Parameters.member.2.ParameterValue", "2"),
    ];
    assert_eq!(update(&both).await, ("1".into(), "2".into()));
    let keep = [
        ("UsePreviousTemplate", "true"),
        ("Parameters.member.1.ParameterKey", "key"),
        ("Parameters.member.1.UsePreviousValue", "true"),
    ];
    assert_eq!(update(&keep).await, ("1".into(), "o".into()), "what is not named returns to its default");
    assert_eq!(update(&[("TemplateBody", TEMPLATE)]).await, ("d".into(), "o".into()));
}

#[tokio::test]
async fn the_other_actions() {
    let app = App::new().await;
    app.create("app").await;
    let cost = app.get("EstimateTemplateCost", &[("TemplateBody", TEMPLATE)]).await;
    assert!(cost.element("Url").starts_with("http"));
    let valid = app.post("ValidateTemplate", &[("TemplateBody", TEMPLATE)]).await;
    assert_eq!((valid.element("ParameterKey"), valid.element("DefaultValue")), ("key", "d"));
    assert_eq!(valid.element("NoEcho"), "false");
    let invalid = TEMPLATE.replace("OS::Heat::Value", "OS::Heat::Nothing");
    assert_eq!(app.post("ValidateTemplate", &[("TemplateBody", &invalid)]).await.status, 400);
    for source in [("TemplateBody", TEMPLATE), ("StackName", "app")] {
        let summary = app.post("GetTemplateSummary", &[source]).await;
        assert_eq!((summary.element("ParameterType"), summary.element("DefaultValue")), ("String", "d"));
        assert_eq!(summary.element("ResourceTypes"), "<member>OS::Heat::Value</member>");
    }
    let cancel = app.get("CancelUpdateStack", &[("StackName", "app")]).await;
    assert_eq!((cancel.status.as_u16(), cancel.element("Code")), (400, "InvalidParameterValue"), "no update");
    let update = [("StackName", "app"), ("TemplateBody", TEMPLATE)];
    assert_eq!(app.post("UpdateStack", &update).await.status, 200);
    assert_eq!(app.get("CancelUpdateStack", &[("StackName", "app")]).await.status, 200);
    let deleted = app.get("DeleteStack", &[("StackName", "app"), ("ContentType", "JSON")]).await;
    assert_eq!(deleted.json()["DeleteStackResponse"]["DeleteStackResult"], "");
    let status = app.get("DescribeStacks", &[("StackName", "app")]).await;
    assert_eq!(status.element("StackStatus"), "DELETE_IN_PROGRESS");
}

#[tokio::test]
async fn the_policy_is_that_of_the_action() {
    let app = App::new().await;
    app.create("app").await;
    let reader = App::on(app.store.clone(), &["reader"], Options::default());
    assert_eq!(reader.get("DescribeStacks", &[]).await.status, 200);
    let denied = reader.post("DeleteStack", &[("StackName", "app")]).await;
    assert_eq!((denied.status.as_u16(), denied.element("Code")), (403, "AccessDenied"));
    let agent = App::on(app.store.clone(), &["heat_stack_user"], Options::default());
    assert_eq!(agent.get("DescribeStacks", &[]).await.status, 403);
    let resource = agent.get("DescribeStackResource", &[("StackName", "app"), ("LogicalResourceId", "value")]).await;
    assert_eq!(resource.status, 403, "not its own resource: {}", resource.text);
}
