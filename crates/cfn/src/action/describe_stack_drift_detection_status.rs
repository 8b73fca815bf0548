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
