//! The result of a comparison, which is made now.

use kiln_value::{Value, value};
use kiln_view::stack_drift::Drift;

use super::Action;
use super::parameter::required;
use crate::call::Call;
use crate::fault::Fault;
use crate::view::property_differences::of_detection;
use crate::view::{arn, instant};

pub(super) static ACTION: Action = Action {
    name: "DescribeStackDriftDetectionStatus",
    rule: "cloudformation:DescribeStackResources",
    parameters: &[&[required("StackDriftDetectionId", "ID that DetectStackDrift has returned")]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let id = call.params.required("StackDriftDetectionId")?;
    let (stack, names) = of_detection(id)?;
    let stack = crate::call::live(call.find(&stack).await?)?;
    let compared = call.service().drift(stack, &names).await?;
    let drifted = compared.resources.iter().filter(|one| matches!(one.drift, Drift::Modified(_) | Drift::Deleted));
    Ok(value!({
        "StackId": (arn(&compared.stack, "")),
        "StackDriftDetectionId": id,
        "StackDriftStatus": (compared.status()),
        "DetectionStatus": "DETECTION_COMPLETE",
        "DriftedStackResourceCount": (i64::try_from(drifted.count()).unwrap_or(i64::MAX)),
        "Timestamp": (instant(call.backends().clock.now())),
    }))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_detection_is_complete_when_somebody_asks() {
        let app = App::new().await;
        app.create("app").await;
        let detection = app.post("DetectStackDrift", &[("StackName", "app")]).await;
        let id = [("StackDriftDetectionId", detection.element("StackDriftDetectionId"))];
        let status = app.get("DescribeStackDriftDetectionStatus", &id).await;
        assert_eq!(status.element("DetectionStatus"), "DETECTION_COMPLETE");
        assert_eq!(status.element("DriftedStackResourceCount"), "0");
        let refused = app.get("DescribeStackDriftDetectionStatus", &[("StackDriftDetectionId", "none")]).await;
        assert_eq!(refused.status.as_u16(), 400);
    }
}
