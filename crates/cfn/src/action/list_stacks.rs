//! The stacks of the project.

use kiln_store::{Sort, SortKey, Stack, StackQuery};
use kiln_value::{Value, value};

use super::Action;
use super::parameter::{PAGE, optional};
use crate::call::Call;
use crate::fault::Fault;
use crate::page::{self, Page};
use crate::view::{arn, instant, status};

pub(super) static ACTION: Action = Action {
    name: "ListStacks",
    rule: "cloudformation:ListStacks",
    parameters: &[
        &[optional(
            "StackStatusFilter",
            "Only stacks with these statuses; deleted stacks are listed only with DELETE_COMPLETE",
        )],
        PAGE,
    ],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let filter = call.params.list("StackStatusFilter");
    // As in Heat, deleted stacks are listed only on request.
    let deleted = filter.contains(&"DELETE_COMPLETE");
    let (stacks, next) =
        page(call, deleted, |stack| filter.is_empty() || filter.contains(&status(stack).as_str())).await?;
    let described = async move |stack| Ok(summary(stack, &call.description_of(stack).await?));
    let summaries = page::entries(&stacks, described, |stack| summary(stack, "")).await?;
    Ok(page::list("StackSummaries", summaries.into(), next))
}

/// A page of the root stacks of the project, newest first.
pub(super) async fn page(
    call: &Call,
    deleted: bool,
    wanted: impl Fn(&Stack) -> bool,
) -> Result<(Vec<Stack>, Option<String>), Fault> {
    let page = Page::of(call)?;
    let query = StackQuery {
        project: Some(call.caller.project_id.clone()),
        not_tags_any: call.options().hidden_stack_tags.clone(),
        deleted,
        sort: Some(Sort { keys: vec![SortKey::Created], descending: true }),
        marker: page.marker,
        limit: Some(page.limit),
        ..StackQuery::default()
    };
    let mut stacks = call.store().stacks(&query).await.map_err(|error| match error {
        kiln_store::Error::NotFound(_) => page::bad_token(),
        error => error.into(),
    })?;
    let next = page.cut(&mut stacks, |last| last.id.to_string());
    stacks.retain(wanted);
    Ok((stacks, next))
}

fn summary(stack: &Stack, description: &str) -> Value {
    value!({
        "StackId": (arn(stack, "")),
        "StackName": (&stack.name),
        "TemplateDescription": description,
        "CreationTime": (instant(stack.created)),
        "LastUpdatedTime": (stack.updated.map(instant)),
        "DeletionTime": (stack.deleted.map(instant)),
        "StackStatus": (status(stack)),
        "StackStatusReason": (&stack.reason),
    })
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn stacks_are_filtered_by_their_status() {
        let app = App::new().await;
        app.create("app").await;
        let list = async |status| app.get("ListStacks", &[("StackStatusFilter.member.1", status)]).await.text;
        assert!(list("CREATE_IN_PROGRESS").await.contains("<StackName>app</StackName>"));
        assert!(!list("CREATE_COMPLETE").await.contains("<StackName>"));
    }
}
