//! The events of a stack, newest first; without a stack, those of all stacks of the project.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use kiln_service::Door;
use kiln_store::{Event, EventQuery, Stack, StackQuery};
use kiln_value::{Value, text, value};

use super::Action;
use super::parameter::{PAGE, optional};
use crate::call::Call;
use crate::fault::Fault;
use crate::page::{self, Page};
use crate::view::{arn, instant, state};

pub(super) static ACTION: Action = Action {
    name: "DescribeStackEvents",
    rule: "cloudformation:DescribeStackEvents",
    parameters: &[&[optional("StackName", "Name or ARN of the stack; without it, events of all stacks")], PAGE],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let stacks = if let Some(named) = call.params.get("StackName") {
        vec![call.find(named).await?]
    } else {
        let project = Some(call.caller.project_id.clone());
        call.store().stacks(&StackQuery { project, ..StackQuery::default() }).await?
    };
    let page = Page::of(call)?;
    let mut events = Vec::new();
    if !stacks.is_empty() {
        let query = EventQuery {
            stacks: stacks.iter().map(|stack| stack.id).collect(),
            descending: true,
            marker: page.marker,
            limit: Some(page.limit),
            ..EventQuery::default()
        };
        events = call.store().events(&query).await.map_err(|error| match error {
            kiln_store::Error::NotFound(_) => page::bad_token(),
            error => error.into(),
        })?;
    }
    let next = page.cut(&mut events, |last| last.id.to_string());
    let stacks: BTreeMap<_, _> = stacks.iter().map(|stack| (stack.id, stack)).collect();
    let (mut hidden, mut shown) = (BTreeMap::new(), Vec::new());
    for mut event in events {
        let Some(stack) = stacks.get(&event.stack) else { continue };
        // An event of a nested stack may contain what only a stack above it hides.
        let hidden = match hidden.entry(stack.id) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(call.service().hidden_values(stack).await?),
        };
        hidden.mask(Door::EventProperties, &mut event.properties);
        shown.push(describe(&event, stack));
    }
    Ok(page::list("StackEvents", shown.into_iter().collect(), next))
}

fn describe(event: &Event, stack: &Stack) -> Value {
    value!({
        "EventId": (event.id.to_string()),
        "StackId": (arn(stack, "")),
        "StackName": (&stack.name),
        "LogicalResourceId": (&event.resource_name),
        "PhysicalResourceId": (event.physical_id.clone()),
        "ResourceType": (&event.resource_type),
        "Timestamp": (instant(event.time)),
        "ResourceStatus": (state(&event.action, event.status)),
        "ResourceStatusReason": (&event.reason),
        "ResourceProperties": (text::json(&event.properties)),
    })
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn the_events_of_a_stack_or_of_all_stacks_are_described() {
        let app = App::new().await;
        app.create("one").await;
        app.create("two").await;
        let events = async |params: &[(&str, &str)]| app.get("DescribeStackEvents", params).await.text;
        let count = |text: &str| text.matches("<EventId>").count();
        assert_eq!((count(&events(&[("StackName", "one")]).await), count(&events(&[]).await)), (1, 2));
    }
}
