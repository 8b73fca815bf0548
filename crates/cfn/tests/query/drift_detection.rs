//! Drift detection. (`tests/cloud/aws.py` tests it with objects that others have changed.)

use kiln_cfn::Options;

use crate::support::App;

#[tokio::test]
async fn resources_without_objects_are_not_checked() {
    let app = App::new().await;
    let arn = app.create("app").await;
    let stack = ("StackName", "app");
    let detection = app.post("DetectStackDrift", &[stack]).await;
    let id = detection.element("StackDriftDetectionId");
    let status = app.get("DescribeStackDriftDetectionStatus", &[("StackDriftDetectionId", id)]).await;
    assert_eq!(status.element("StackId"), arn);
    assert_eq!(status.element("DetectionStatus"), "DETECTION_COMPLETE");
    assert_eq!((status.element("StackDriftStatus"), status.element("DriftedStackResourceCount")), ("IN_SYNC", "0"));
    let one = ("LogicalResourceIds.member.1", "nothing");
    assert_eq!(app.post("DetectStackDrift", &[stack, one]).await.element("Code"), "InvalidParameterValue");
    let unknown = app.get("DescribeStackDriftDetectionStatus", &[("StackDriftDetectionId", "x")]).await;
    assert_eq!(unknown.element("Code"), "ValidationError");
    let foreign = App::on(app.store.clone(), &["reader"], Options::default());
    assert_eq!(foreign.post("DetectStackDrift", &[stack]).await.status, 200, "a reader may compare");
    let user = App::on(app.store.clone(), &["heat_stack_user"], Options::default());
    for action in ["DetectStackDrift", "DetectStackResourceDrift", "DescribeStackResourceDrifts"] {
        let answer = user.post(action, &[stack, ("LogicalResourceId", "value")]).await;
        assert_eq!(answer.status, 403, "{action}");
    }
}
