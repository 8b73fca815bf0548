//! Errors, versions and limits.

use http::{Method, Request, StatusCode};
use kiln_cfn::Options;

use crate::support::{App, TEMPLATE};

/// Action, parameters, status, code.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], u16, &'a str);

#[tokio::test]
async fn errors_have_code_and_type() {
    let app = App::new().await;
    app.create("app").await;
    let template = ("TemplateBody", TEMPLATE);
    let cases: &[Case<'_>] = &[
        ("Nothing", &[], 400, "InvalidAction"),
        ("", &[], 400, "InvalidAction"),
        ("ListStacks", &[("Version", "2009-01-01")], 400, "InvalidAction"),
        ("CreateStack", &[template], 400, "MissingParameter"),
        ("CreateStack", &[("StackName", "b")], 400, "MissingParameter"),
        ("CreateStack", &[("StackName", "app"), template], 400, "AlreadyExists"),
        ("CreateStack", &[("StackName", "1"), template], 400, "InvalidParameterValue"),
        ("CreateStack", &[("StackName", "b"), ("TemplateBody", "x")], 400, "InvalidParameterValue"),
        ("CreateStack", &[("StackName", "b"), ("TemplateURL", "http://localhost/")], 400, "InvalidParameterValue"),
        (
            "CreateStack",
            &[("StackName", "b"), template, ("NotificationARNs.member.1", "arn")],
            400,
            "InvalidParameterValue",
        ),
        (
            "CreateStack",
            &[("StackName", "b"), template, ("DisableRollback", "true"), ("OnFailure", "DELETE")],
            400,
            "InvalidParameterCombination",
        ),
        ("UpdateStack", &[("StackName", "app")], 400, "MissingParameter"),
        ("DescribeStacks", &[("StackName", "none")], 400, "ValidationError"),
        ("DescribeStacks", &[("StackName", "arn:openstack:heat::other:stacks/app/1")], 400, "ValidationError"),
        ("DescribeStacks", &[("StackName", "arn:aws:cloudformation")], 400, "InvalidParameterValue"),
        ("DescribeStacks", &[("NextToken", "x")], 400, "InvalidParameterValue"),
        ("DescribeStackResource", &[("StackName", "app")], 400, "MissingParameter"),
        ("DescribeStackResource", &[("StackName", "app"), ("LogicalResourceId", "none")], 400, "InvalidParameterValue"),
        (
            "DescribeStackResources",
            &[("StackName", "app"), ("PhysicalResourceId", "none")],
            400,
            "InvalidParameterCombination",
        ),
        ("GetTemplate", &[], 400, "MissingParameter"),
    ];
    for (action, params, status, code) in cases {
        for answer in [app.get(action, params).await, app.post(action, params).await] {
            assert_eq!((answer.status.as_u16(), answer.element("Code")), (*status, *code), "{action}: {}", answer.text);
            assert_eq!(answer.element("Type"), "Sender");
            assert!(answer.text.starts_with("<ErrorResponse><Error><Type>"), "{}", answer.text);
        }
        let params: Vec<_> = params.iter().chain(&[("ContentType", "JSON")]).copied().collect();
        let json = app.get(action, &params).await;
        assert_eq!(json.status.as_u16(), *status, "JSON has the same status");
        assert_eq!(json.json()["ErrorResponse"]["Error"]["Code"], *code);
    }
    let missing = app.get("DescribeStacks", &[("StackName", "none")]).await;
    assert_eq!(missing.element("Message"), "Stack with id none does not exist", "aws deploy looks for this text");
}

#[tokio::test]
async fn paths_and_methods() {
    let app = App::new().await;
    let get = async |path: &str| app.send(Request::get(path), String::new()).await.status;
    assert_eq!(get("/").await, StatusCode::MULTIPLE_CHOICES);
    assert_eq!(get("/v1?Action=ListStacks").await, StatusCode::OK);
    assert_eq!(get("/v1.0/?Action=ListStacks").await, StatusCode::OK);
    assert_eq!(get("/v1/stacks").await, StatusCode::NOT_FOUND);
    assert_eq!(get("/healthcheck").await, StatusCode::OK);
    let put = Request::builder().method(Method::PUT).uri("/v1/?Action=ListStacks");
    assert_eq!(app.send(put, String::new()).await.status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn large_bodies_are_refused() {
    let app = App::of(&["member"], Options { max_body: 2000, ..Options::default() }).await;
    let large = " ".repeat(2000);
    let answer = app.post("CreateStack", &[("StackName", "a"), ("TemplateBody", &large)]).await;
    assert_eq!((answer.status.as_u16(), answer.element("Code")), (400, "RequestLimitExceeded"));
}
