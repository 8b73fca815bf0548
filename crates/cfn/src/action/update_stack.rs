//! Updates a stack.

use kiln_service::LIFT_GUARD;
use kiln_value::{Value, value};

use super::Action;
use super::parameter::{PARAMETERS, SETTINGS, STACK_NAME, TEMPLATE, TOKEN, USE_PREVIOUS_TEMPLATE, optional};
use super::set_stack_policy::policy;
use crate::call::Call;
use crate::fault::Fault;
use crate::input;
use crate::view::arn;

pub(super) static ACTION: Action = Action {
    name: "UpdateStack",
    rule: "cloudformation:UpdateStack",
    parameters: &[
        &[
            STACK_NAME,
            TOKEN,
            USE_PREVIOUS_TEMPLATE,
            PARAMETERS,
            optional(DURING_UPDATE, "A stack policy for this update, instead of that of the stack"),
        ],
        TEMPLATE,
        SETTINGS,
    ],
    run: |call| Box::pin(run(call)),
};

const DURING_UPDATE: &str = "StackPolicyDuringUpdateBody";

async fn run(call: &Call) -> Result<Value, Fault> {
    let stack = call.stack().await?;
    let mut update = input::update(call, &stack).await?;
    update.stack_policy = policy(call, DURING_UPDATE)?;
    if update.stack_policy.is_some() {
        call.allow(LIFT_GUARD.name)?;
    }
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
        let policy = |body: &'static str| {
            [("StackName", "app"), ("TemplateBody", TEMPLATE), ("StackPolicyDuringUpdateBody", body)]
        };
        let refused = app.post("UpdateStack", &policy("{}")).await;
        assert_eq!(refused.element("Message"), "Error validating stack policy: it has no list Statement");
        let updated = app.post("UpdateStack", &policy(r#"{"Statement": []}"#)).await;
        assert_eq!(updated.element("StackId"), arn);
        let missing = app.post("UpdateStack", &[("StackName", "none"), ("TemplateBody", TEMPLATE)]).await;
        assert_eq!((missing.status.as_u16(), missing.element("Code")), (400, "ValidationError"));
    }
}
