//! Protects a stack from being deleted, or no longer.

use kiln_resource::Action as StackAction;
use kiln_service::{ADD_GUARD, LIFT_GUARD};
use kiln_value::{Value, value};

use super::Action;
use super::parameter::{STACK_NAME, required};
use crate::call::Call;
use crate::fault::Fault;
use crate::view::arn;

pub(super) static ACTION: Action = Action {
    name: "UpdateTerminationProtection",
    rule: "cloudformation:UpdateStack",
    parameters: &[&[STACK_NAME, required("EnableTerminationProtection", "Whether the stack cannot be deleted")]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let stack = call.stack().await?;
    let protect = call.params.boolean("EnableTerminationProtection")?.unwrap_or(false);
    call.allow(if protect { ADD_GUARD.name } else { LIFT_GUARD.name })?;
    if stack.parent.is_some() {
        return Err(Fault::validation("Termination protection cannot be set for a nested stack".to_owned()));
    }
    if protect && stack.state.action == StackAction::Delete {
        let text = format!("Termination protection of stack [{}] cannot be enabled: it is being deleted", stack.name);
        return Err(Fault::validation(text));
    }
    call.service().protect_from_deletion(&call.caller, &stack, protect).await?;
    Ok(value!({ "StackId": (arn(&stack, "")) }))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_protected_stack_is_not_deleted() {
        let app = App::new().await;
        let arn = app.create("app").await;
        let protect = async |enable: &str| {
            let given = [("StackName", "app"), ("EnableTerminationProtection", enable)];
            app.post("UpdateTerminationProtection", &given).await
        };
        let shown = async || {
            let described = app.get("DescribeStacks", &[("StackName", "app")]).await;
            described.element("EnableTerminationProtection").to_owned()
        };
        assert_eq!(shown().await, "false");
        for _ in 0..2 {
            assert_eq!(protect("true").await.element("StackId"), arn);
        }
        assert_eq!(shown().await, "true");
        let refused = app.post("DeleteStack", &[("StackName", "app")]).await;
        assert_eq!((refused.status.as_u16(), refused.element("Code")), (400, "ValidationError"));
        let text = "Stack [app] cannot be deleted while TerminationProtection is enabled";
        assert_eq!(refused.element("Message"), text);
        assert_eq!(protect("false").await.element("StackId"), arn);
        assert_eq!(app.post("DeleteStack", &[("StackName", "app")]).await.status.as_u16(), 200);
        let late = protect("true").await;
        assert_eq!((late.status.as_u16(), late.element("Code")), (400, "ValidationError"), "{}", late.text);
        let missing = app.post("UpdateTerminationProtection", &[("StackName", "app")]).await;
        assert_eq!(missing.element("Code"), "MissingParameter");
    }
}
