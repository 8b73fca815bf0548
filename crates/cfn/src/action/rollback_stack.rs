//! Rolls back a stack whose create or update has failed, and was not rolled back.

use kiln_value::{Value, value};

use super::Action;
use super::parameter::{STACK_NAME, TOKEN};
use crate::call::Call;
use crate::fault::Fault;
use crate::view::arn;

pub(super) static ACTION: Action = Action {
    name: "RollbackStack",
    rule: "cloudformation:UpdateStack",
    parameters: &[&[STACK_NAME, TOKEN]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let stack = call.stack().await?;
    let stack = call.service().roll_back(&call.caller, &stack).await?;
    Ok(value!({ "StackId": (arn(&stack, "")) }))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn only_what_has_failed_is_rolled_back() {
        let app = App::new().await;
        app.create("app").await;
        let refused = app.post("RollbackStack", &[("StackName", "app")]).await;
        assert_eq!((refused.status.as_u16(), refused.element("Code")), (400, "InvalidParameterValue"));
        assert!(refused.element("Message").contains("in the state CREATE_IN_PROGRESS"), "{}", refused.text);
    }
}
