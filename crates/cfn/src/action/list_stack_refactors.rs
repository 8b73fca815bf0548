//! The refactorings of stacks.

use kiln_value::Value;

use super::Action;
use super::parameter::{PAGE, optional};
use crate::call::Call;
use crate::fault::Fault;
use crate::page;
use crate::stack_refactor::{Head, KIND};
use crate::worksheet::read;

pub(super) static ACTION: Action = Action {
    name: "ListStackRefactors",
    rule: "cloudformation:DescribeStacks",
    parameters: &[
        &[optional("ExecutionStatusFilter", "Only refactors whose execution has one of these statuses")],
        PAGE,
    ],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let sheets = call.all_kept(KIND).await?;
    let heads = sheets.iter().map(|sheet| read(&sheet.head)).collect::<Result<Vec<Head>, Fault>>()?;
    let stacks = call.stacks_of_refactors(&heads.iter().collect::<Vec<_>>()).await?;
    let (now, wanted) = (call.backends().clock.now(), call.params.list("ExecutionStatusFilter"));
    let all = sheets.iter().zip(&heads).map(|(sheet, head)| (sheet, head, head.execution(&stacks, now)));
    let all = all.filter(|(.., execution)| wanted.is_empty() || wanted.contains(&execution.as_str()));
    let (shown, next) = page::marked(call, all.collect(), |(sheet, ..)| sheet.id.to_string())?;
    let summaries = shown.into_iter().map(|(sheet, head, execution)| Value::from(head.summary(sheet, execution)));
    Ok(page::list("StackRefactorSummaries", summaries.collect(), next))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_project_without_refactors_has_an_empty_list() {
        let listed = App::new().await.get("ListStackRefactors", &[]).await;
        assert!(
            listed.status.as_u16() == 200 && listed.element("StackRefactorSummaries").is_empty(),
            "{}",
            listed.text
        );
    }
}
