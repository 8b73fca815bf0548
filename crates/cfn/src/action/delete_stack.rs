//! Deletes a stack.

use kiln_value::Value;

use super::Action;
use crate::call::Call;
use crate::fault::Fault;

pub(super) static ACTION: Action =
    Action { name: "DeleteStack", rule: "cloudformation:DeleteStack", run: |call| Box::pin(run(call)) };

async fn run(call: &Call) -> Result<Value, Fault> {
    let stack = call.stack().await?;
    call.service().delete_stack(&call.caller, &stack).await?;
    Ok("".into())
}
