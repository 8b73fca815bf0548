//! Updates a stack.

use kiln_value::{Value, value};

use crate::call::Call;
use crate::fault::Fault;
use crate::input;
use crate::view::arn;

pub(super) async fn run(call: &Call) -> Result<Value, Fault> {
    let stack = call.stack().await?;
    let update = input::update(call, &stack).await?;
    let stack = call.service().update_stack(&call.caller, &stack, update).await?;
    Ok(value!({ "StackId": (arn(&stack, "")) }))
}
