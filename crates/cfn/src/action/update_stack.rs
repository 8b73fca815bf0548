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
