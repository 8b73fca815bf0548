//! Stacks with parameters and outputs.

use kiln_service::Door;
use kiln_store::Stack;
use kiln_value::{Map, Value, text, value};

use super::parameter::{PAGE, optional};
use super::{Action, list_stacks};
use crate::call::Call;
use crate::fault::Fault;
use crate::page;
use crate::view::{arn, instant, status, tags};

pub(super) static ACTION: Action = Action {
    name: "DescribeStacks",
    rule: "cloudformation:DescribeStacks",
    parameters: &[&[optional("StackName", "Name or ARN of the stack; without it, all stacks")], PAGE],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let (described, next) = if let Some(named) = call.params.get("StackName") {
        (vec![described(call, &call.find(named).await?).await?], None)
    } else {
        let (stacks, next) = list_stacks::page(call, false, |_| true).await?;
        (page::entries(&stacks, |stack| described(call, stack), brief).await?, next)
    };
    let described: Value = described.into_iter().map(Value::Map).collect();
    Ok(page::list("Stacks", described, next))
}

/// What the row of a stack says.
fn brief(stack: &Stack) -> Map {
    let shown = value!({
        "StackId": (arn(stack, "")),
        "StackName": (&stack.name),
        "Description": "",
        "Parameters": [],
        "CreationTime": (instant(stack.created)),
        "LastUpdatedTime": (stack.updated.map(instant)),
        "DeletionTime": (stack.deleted.map(instant)),
        "StackStatus": (status(stack)),
        "StackStatusReason": (&stack.reason),
        "DisableRollback": (stack.disable_rollback),
        "TimeoutInMinutes": (stack.timeout_mins),
        "NotificationARNs": [],
        "Capabilities": [],
        "Tags": (tags(&stack.tags)),
    });
    match shown {
        Value::Map(shown) => shown,
        _ => Map::new(),
    }
}

async fn described(call: &Call, stack: &Stack) -> Result<Map, Fault> {
    let outline = call.service().recent.outline(call.backends(), stack).await?;
    let mut parameters = outline.parameters.texts();
    call.service().mask_inherited(Door::Parameters, stack, &mut parameters).await?;
    let parameters: Value = parameters.iter().map(|(name, value)| parameter(name, value)).collect();
    let mut shown = brief(stack);
    let protected = call.service().is_protected_from_deletion(stack).await?;
    shown.insert("EnableTerminationProtection".to_owned(), protected.into());
    shown.insert("Description".to_owned(), outline.template.description().into());
    shown.insert("Parameters".to_owned(), parameters);
    if outline.has_outputs() && !stack.state.is_complete(kiln_resource::Action::Delete) {
        let outputs = call.service().view(stack.clone()).await?.outputs(None).await;
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
        shown.insert("Outputs".to_owned(), outputs);
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

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_stack_or_all_stacks_are_described() {
        let app = App::new().await;
        app.create("one").await;
        app.create("two").await;
        let all = app.get("DescribeStacks", &[]).await.text;
        assert_eq!(all.matches("<StackName>").count(), 2, "{all}");
        assert_eq!(app.get("DescribeStacks", &[("StackName", "two")]).await.element("StackName"), "two");
        assert_eq!(app.get("DescribeStacks", &[("StackName", "none")]).await.status.as_u16(), 400);
    }
}
