//! Continues a rollback of an update that has failed.

use std::collections::BTreeSet;

use kiln_resource::{Action as StackAction, State, Status};
use kiln_value::{Map, Value};

use super::Action;
use super::parameter::{STACK_NAME, optional};
use crate::call::Call;
use crate::fault::Fault;

pub(super) static ACTION: Action = Action {
    name: "ContinueUpdateRollback",
    rule: "cloudformation:UpdateStack",
    parameters: &[&[
        STACK_NAME,
        optional(
            "ResourcesToSkip",
            "Names of resources with which nothing is done; below a nested stack NAME.RESOURCE",
        ),
    ]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let stack = call.stack().await?;
    if stack.state != State::new(StackAction::Rollback, Status::Failed) {
        let text = format!("Stack [{}] is in {} state and can not continue rollback", stack.name, stack.state);
        return Err(Fault::validation(text));
    }
    let skip: BTreeSet<String> =
        call.params.list("ResourcesToSkip").iter().map(|name| name.replace('.', "/")).collect();
    call.service().continue_stack(&call.caller, &stack, &skip).await?;
    Ok(Value::Map(Map::new()))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn only_a_failed_rollback_is_continued() {
        let app = App::new().await;
        app.create("app").await;
        let refused = app.post("ContinueUpdateRollback", &[("StackName", "app")]).await;
        assert_eq!((refused.status.as_u16(), refused.element("Code")), (400, "ValidationError"));
        let text = "Stack [app] is in CREATE_IN_PROGRESS state and can not continue rollback";
        assert_eq!(refused.element("Message"), text);
    }
}
