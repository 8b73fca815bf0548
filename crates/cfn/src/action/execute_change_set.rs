//! Executes a change set.

use kiln_value::{Map, Value};

use super::Action;
use super::parameter::{CHANGE_SET, TOKEN, optional};
use crate::call::Call;
use crate::fault::Fault;

pub(super) static ACTION: Action = Action {
    name: "ExecuteChangeSet",
    rule: "cloudformation:DescribeStacks",
    parameters: &[&[TOKEN, optional("DisableRollback", "Keep what is done if the change fails")], CHANGE_SET],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let prepared = call.change_set().await?;
    call.allow(if prepared.creates() { "cloudformation:CreateStack" } else { "cloudformation:UpdateStack" })?;
    let disable_rollback = call.params.boolean("DisableRollback")?;
    call.service().execute_change_set(&call.caller, prepared, disable_rollback).await?;
    Ok(Value::Map(Map::new()))
}

#[cfg(test)]
mod tests {
    use crate::support::{App, TEMPLATE};

    #[tokio::test]
    async fn a_change_set_is_executed_once() {
        let app = App::new().await;
        let names = [("StackName", "new"), ("ChangeSetName", "one")];
        let made = [&names[..], &[("TemplateBody", TEMPLATE), ("ChangeSetType", "CREATE")]].concat();
        app.post("CreateChangeSet", &made).await;
        assert_eq!(app.post("ExecuteChangeSet", &names).await.status.as_u16(), 200);
        assert_eq!(
            app.get("DescribeStacks", &[("StackName", "new")]).await.element("StackStatus"),
            "CREATE_IN_PROGRESS"
        );
        assert_eq!(app.post("ExecuteChangeSet", &names).await.status.as_u16(), 400);
    }
}
