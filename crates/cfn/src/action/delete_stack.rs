//! Deletes a stack.

use kiln_value::Value;

use super::Action;
use super::parameter::{STACK_NAME, TOKEN};
use crate::call::Call;
use crate::fault::Fault;

pub(super) static ACTION: Action = Action {
    name: "DeleteStack",
    rule: "cloudformation:DeleteStack",
    parameters: &[&[STACK_NAME, TOKEN]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let stack = call.stack().await?;
    if call.service().is_protected_from_deletion(&stack).await? {
        let name = &stack.name;
        let text = format!("Stack [{name}] cannot be deleted while TerminationProtection is enabled");
        return Err(Fault::validation(text));
    }
    call.service().delete_stack(&call.caller, &stack).await?;
    Ok("".into())
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_delete_begins() {
        let app = App::new().await;
        app.create("app").await;
        assert_eq!(app.post("DeleteStack", &[("StackName", "app")]).await.status.as_u16(), 200);
        let described = app.get("DescribeStacks", &[("StackName", "app")]).await;
        assert_eq!(described.element("StackStatus"), "DELETE_IN_PROGRESS");
        let missing = app.post("DeleteStack", &[("StackName", "none")]).await;
        assert_eq!((missing.status.as_u16(), missing.element("Code")), (400, "ValidationError"));
    }
}
