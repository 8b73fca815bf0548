//! Stacks with parameters and outputs.

use kiln_resource::Action;
use kiln_service::Door;
use kiln_store::Stack;
use kiln_value::{Value, text, value};

use super::list_stacks;
use crate::call::Call;
use crate::fault::Fault;
use crate::page;
use crate::view::{arn, instant, status, tags};

pub(super) async fn run(call: &Call) -> Result<Value, Fault> {
    let (stacks, next) = match call.params.get("StackName") {
        Some(named) => (vec![call.find(named).await?], None),
        None => list_stacks::page(call, false, |_| true).await?,
    };
    let mut described = Vec::new();
    for stack in stacks {
        described.push(describe(call, stack).await?);
    }
    Ok(page::list("Stacks", described.into(), next))
}

async fn describe(call: &Call, stack: Stack) -> Result<Value, Fault> {
    let outline = call.service().recent.outline(call.backends(), &stack).await?;
    let mut parameters = outline.parameters.texts();
    call.service().mask_inherited(Door::Parameters, &stack, &mut parameters).await?;
    let parameters: Value = parameters.iter().map(|(name, value)| parameter(name, value)).collect();
    let mut shown = value!({
        "StackId": (arn(&stack, "")),
        "StackName": (&stack.name),
        "Description": (outline.template.description()),
        "Parameters": parameters,
        "CreationTime": (instant(stack.created)),
        "LastUpdatedTime": (stack.updated.map(instant)),
        "DeletionTime": (stack.deleted.map(instant)),
        "StackStatus": (status(&stack)),
        "StackStatusReason": (&stack.reason),
        "DisableRollback": (stack.disable_rollback),
        "TimeoutInMinutes": (stack.timeout_mins),
        "NotificationARNs": [],
        "Capabilities": [],
        "Tags": (tags(&stack.tags)),
    });
    if outline.has_outputs() && !stack.state.is_complete(Action::Delete) {
        let outputs = call.service().view(stack).await?.outputs(None).await;
        let outputs: Value = outputs
            .into_iter()
            .map(|output| {
                value!({
                    "OutputKey": (output.key),
                    "OutputValue": (output.value),
                    "Description": (output.description),
                })
            })
            .collect();
        if let Some(shown) = shown.as_map_mut() {
            shown.insert("Outputs".to_owned(), outputs);
        }
    }
    Ok(shown)
}

fn parameter(name: &str, value: &Value) -> Value {
    let value = match value {
        Value::Null => Value::from(""),
        value => text::str(value).into(),
    };
    value!({ "ParameterKey": name, "ParameterValue": value })
}
