//! Updates a stack.

use kiln_value::{Value, value};

use super::Action;
use super::parameter::{PARAMETERS, SETTINGS, STACK_NAME, TEMPLATE, USE_PREVIOUS_TEMPLATE};
use crate::call::Call;
use crate::fault::Fault;
use crate::input;
use crate::view::arn;

pub(super) static ACTION: Action = Action {
    name: "UpdateStack",
    rule: "cloudformation:UpdateStack",
    parameters: &[&[STACK_NAME, USE_PREVIOUS_TEMPLATE, PARAMETERS], TEMPLATE, SETTINGS],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let stack = call.stack().await?;
    let update = input::update(call, &stack).await?;
    let stack = call.service().update_stack(&call.caller, &stack, update).await?;
    Ok(value!({ "StackId": (arn(&stack, "")) }))
}

#[cfg(test)]
mod tests {
    use crate::support::{App, TEMPLATE};

    #[tokio::test]
    async fn an_update_returns_the_arn_of_the_stack() {
        let app = App::new().await;
        let arn = app.create("app").await;
        let updated = app.post("UpdateStack", &[("StackName", "app"), ("TemplateBody", TEMPLATE)]).await;
        assert_eq!(updated.element("StackId"), arn);
        let missing = app.post("UpdateStack", &[("StackName", "none"), ("TemplateBody", TEMPLATE)]).await;
        assert_eq!((missing.status.as_u16(), missing.element("Code")), (400, "ValidationError"));
    }
}
