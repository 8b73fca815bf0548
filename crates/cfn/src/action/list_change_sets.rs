//! The change sets of a stack.

use kiln_value::Value;

use super::Action;
use super::parameter::{PAGE, STACK_NAME};
use crate::call::Call;
use crate::fault::Fault;
use crate::page;
use crate::view::change_set::summary;

pub(super) static ACTION: Action = Action {
    name: "ListChangeSets",
    rule: "cloudformation:DescribeStacks",
    parameters: &[&[STACK_NAME], PAGE],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let name = call.stack_name(call.params.required("StackName")?)?;
    let sets = call.service().change_sets(&call.caller, &name).await?;
    if sets.is_empty() {
        // An unknown stack is an error.
        call.stack().await?;
    }
    let (sets, next) = page::marked(call, sets, |one| one.set.id.to_string())?;
    Ok(page::list("Summaries", sets.iter().map(|set| Value::from(summary(set))).collect(), next))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn the_change_sets_of_a_stack_are_listed() {
        let app = App::new().await;
        app.create("app").await;
        let list = app.get("ListChangeSets", &[("StackName", "app")]).await;
        assert!(list.status.as_u16() == 200 && !list.text.contains("ChangeSetName"), "{}", list.text);
        assert_eq!(app.get("ListChangeSets", &[("StackName", "none")]).await.status.as_u16(), 400);
    }
}
