//! What a refactoring of stacks moves.

use kiln_value::Value;

use super::Action;
use super::parameter::{PAGE, STACK_REFACTOR};
use crate::call::Call;
use crate::fault::Fault;
use crate::page;
use crate::stack_refactor::MoveAction;

pub(super) static ACTION: Action = Action {
    name: "ListStackRefactorActions",
    rule: "cloudformation:DescribeStacks",
    parameters: &[&[STACK_REFACTOR], PAGE],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let (_, _, body) = call.stack_refactor().await?;
    let (actions, next) = page::numbered(call, &body.actions)?;
    Ok(page::list("StackRefactorActions", actions.into_iter().map(MoveAction::view).collect(), next))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_refactor_must_be_named() {
        let refused = App::new().await.get("ListStackRefactorActions", &[]).await;
        assert_eq!(refused.element("Code"), "MissingParameter", "{}", refused.text);
    }
}
