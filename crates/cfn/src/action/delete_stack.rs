//! Deletes a stack.

use kiln_value::Value;

use crate::call::Call;
use crate::fault::Fault;

pub(super) async fn run(call: &Call) -> Result<Value, Fault> {
    let stack = call.stack().await?;
    call.service().delete_stack(&call.caller, &stack).await?;
    Ok("".into())
}
