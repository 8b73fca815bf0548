//! A change set with its changes.

use kiln_value::{Value, value};

use super::Action;
use super::parameter::{CHANGE_SET, PAGE};
use crate::call::Call;
use crate::fault::Fault;
use crate::page;
use crate::view::change_set::{change, summary};

pub(super) static ACTION: Action = Action {
    name: "DescribeChangeSet",
    rule: "cloudformation:DescribeStacks",
    parameters: &[CHANGE_SET, PAGE],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let prepared = call.change_set().await?;
    let (changes, next) = page::numbered(call, call.service().changes_of(&prepared).await?)?;
    let parameters = prepared.parameters().iter();
    let parameters =
        parameters.map(|(name, value)| value!({ "ParameterKey": name, "ParameterValue": (value.clone()) }));
    let mut shown = summary(&prepared);
    let more = value!({
        "Parameters": (parameters.collect::<Value>()),
        "NotificationARNs": [],
        "Capabilities": [],
        "Tags": (crate::view::tags(prepared.tags())),
        "Changes": (changes.iter().map(change).collect::<Value>()),
        "NextToken": next,
        "DeploymentMode": (prepared.reverts_drift().then_some("REVERT_DRIFT")),
    });
    if let Value::Map(more) = more {
        shown.extend(more);
    }
    Ok(shown.into())
}

#[cfg(test)]
mod tests {
    use crate::support::{App, TEMPLATE};

    #[tokio::test]
    async fn a_change_set_is_described_with_its_changes() {
        let app = App::new().await;
        let names = [("StackName", "new"), ("ChangeSetName", "one")];
        let missing = app.get("DescribeChangeSet", &names).await;
        assert_eq!(missing.status.as_u16(), 404, "{}", missing.text);
        let made = [&names[..], &[("TemplateBody", TEMPLATE), ("ChangeSetType", "CREATE")]].concat();
        app.post("CreateChangeSet", &made).await;
        let described = app.get("DescribeChangeSet", &names).await;
        assert_eq!((described.element("Action"), described.element("LogicalResourceId")), ("Add", "value"));
    }
}
