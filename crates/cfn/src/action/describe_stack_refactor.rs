//! A refactoring of stacks.

use kiln_value::Value;

use super::Action;
use super::parameter::STACK_REFACTOR;
use crate::call::Call;
use crate::fault::Fault;

pub(super) static ACTION: Action = Action {
    name: "DescribeStackRefactor",
    rule: "cloudformation:DescribeStacks",
    parameters: &[&[STACK_REFACTOR]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let (sheet, head, _) = call.stack_refactor().await?;
    let (execution, _) = call.execution_of(&head).await?;
    let mut shown = head.summary(&sheet, execution);
    shown.insert("StackIds".to_owned(), head.arns(&sheet.project));
    Ok(shown.into())
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_refactor_that_does_not_exist_has_a_code_of_its_own() {
        let app = App::new().await;
        for id in ["none", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"] {
            for action in ["DescribeStackRefactor", "ExecuteStackRefactor", "ListStackRefactorActions"] {
                let missing = app.get(action, &[("StackRefactorId", id)]).await;
                assert_eq!(missing.status.as_u16(), 404, "{}", missing.text);
                assert_eq!(missing.element("Code"), "StackRefactorNotFoundException");
            }
        }
    }
}
