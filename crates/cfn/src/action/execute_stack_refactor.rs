//! Executes a refactoring of stacks. It is complete when the request is answered.

use kiln_value::{Map, Value};

use super::Action;
use super::parameter::STACK_REFACTOR;
use crate::call::Call;
use crate::fault::Fault;
use crate::stack_refactor::{Execution, Head};

/// The handler asks for the rule of the REST call, too.
pub(super) static ACTION: Action = Action {
    name: "ExecuteStackRefactor",
    rule: "cloudformation:UpdateStack",
    parameters: &[&[STACK_REFACTOR]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    call.allow("refactors:create")?;
    let (mut sheet, head, body) = call.stack_refactor().await?;
    let (execution, mut stacks) = call.execution_of(&head).await?;
    let refused = |status: &str| {
        Err(Fault::validation(format!("Stack refactor {} cannot be executed: its status is {status}", sheet.id)))
    };
    if execution != Execution::Available {
        return refused(execution.as_str());
    }
    let stacks = head.stacks.iter().filter_map(|seen| stacks.remove(&seen.id)).collect();
    let refactor = body.refactor(call, stacks)?;
    let begun = Head { begun: Some(call.backends().clock.now()), ..head.clone() };
    if !call.keep_changed(&sheet, (&begun, &body)).await? {
        return refused(Execution::InProgress.as_str());
    }
    match call.service().refactor_stacks(&call.caller, refactor).await.map_err(Fault::from) {
        Ok(_) => Ok(Value::Map(Map::new())),
        Err(fault) => {
            if !fault.status.is_server_error() {
                // Nothing was moved: it can be tried again.
                sheet.version += 1;
                call.keep_changed(&sheet, (&Head { begun: None, ..head }, &body)).await?;
            }
            Err(fault)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn readers_execute_nothing() {
        let app = App::of(&["reader"], crate::Options::default()).await;
        let denied = app.post("ExecuteStackRefactor", &[("StackRefactorId", "none")]).await;
        assert_eq!(denied.status.as_u16(), 403, "{}", denied.text);
    }
}
