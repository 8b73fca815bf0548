//! Deletes a stack.

use kiln_value::Value;

use super::Action;
use super::parameter::STACK_NAME;
use crate::call::Call;
use crate::fault::Fault;

pub(super) static ACTION: Action = Action {
    name: "DeleteStack",
    rule: "cloudformation:DeleteStack",
    parameters: &[&[STACK_NAME]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let stack = call.stack().await?;
    call.service().delete_stack(&call.caller, &stack).await?;
    Ok("".into())
}
