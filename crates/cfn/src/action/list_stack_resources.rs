//! The resources of a stack in short.

use kiln_value::Value;

use super::Action;
use super::parameter::{PAGE, STACK_NAME};
use crate::call::Call;
use crate::fault::Fault;
use crate::page::{self, Page};
use crate::view::resource::{Resources, summary};

pub(super) static ACTION: Action = Action {
    name: "ListStackResources",
    rule: "cloudformation:ListStackResources",
    parameters: &[&[STACK_NAME], PAGE],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let stack = call.stack_or_deleted().await?;
    let page: Page<String> = Page::of(call)?;
    let resources = Resources::of(call, stack).await?;
    let start = match &page.marker {
        None => 0,
        Some(name) => resources.rows().iter().position(|row| row.name == *name).ok_or_else(page::bad_token)? + 1,
    };
    let mut rows: Vec<_> = resources.rows().iter().skip(start).collect();
    let next = page.cut(&mut rows, |last| last.name.clone());
    let shown = rows.into_iter().map(|row| Value::from(summary(row))).collect();
    Ok(page::list("StackResourceSummaries", shown, next))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn the_resources_of_a_stack_are_listed() {
        let app = App::new().await;
        app.create("app").await;
        let listed = app.get("ListStackResources", &[("StackName", "app")]).await;
        assert_eq!((listed.element("LogicalResourceId"), listed.element("ResourceType")), ("value", "OS::Heat::Value"));
        let token = [("StackName", "app"), ("NextToken", "none")];
        assert_eq!(app.get("ListStackResources", &token).await.status.as_u16(), 400);
    }
}
