//! The resources of a stack, which is given by its name or by the physical ID of one of its resources.

use kiln_service::Error;
use kiln_store::{Stack, StackQuery};
use kiln_value::{Map, Value};

use super::Action;
use super::parameter::optional;
use crate::call::Call;
use crate::fault::Fault;
use crate::view::resource::Resources;

/// How many stacks are searched at once for a physical ID.
const AT_ONCE: usize = 20;

pub(super) static ACTION: Action = Action {
    name: "DescribeStackResources",
    rule: "cloudformation:DescribeStackResources",
    parameters: &[&[
        optional("StackName", "Name or ARN of the stack; required without PhysicalResourceId"),
        optional("PhysicalResourceId", "ID of an object of the stack, instead of StackName"),
        optional("LogicalResourceId", "Only this resource"),
    ]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let params = &call.params;
    let stack = match (params.get("StackName"), params.get("PhysicalResourceId")) {
        (Some(_), Some(_)) => {
            return Err(Fault::combination("Use `StackName` or `PhysicalResourceId` but not both"));
        }
        (None, Some(id)) => with_resource(call, id).await?,
        _ => call.stack_or_deleted().await?,
    };
    let resources = Resources::of(call, stack).await?;
    let only = params.get("LogicalResourceId");
    let rows = resources.rows().iter().filter(|row| only.is_none_or(|name| name == row.name));
    let shown = rows.map(|row| Value::from(resources.entry(row))).collect();
    Ok(Value::Map(Map::from([("StackResources".to_owned(), shown)])))
}

/// The stack of the project with a resource of this physical ID.
async fn with_resource(call: &Call, id: &str) -> Result<Stack, Fault> {
    let project = Some(call.caller.project_id.clone());
    let stacks = call.store().stacks(&StackQuery { project, nested: true, ..StackQuery::default() }).await?;
    for stacks in stacks.chunks(AT_ONCE) {
        let ids: Vec<_> = stacks.iter().map(|stack| stack.id).collect();
        let rows = call.store().resources_of(&ids).await?;
        let found = rows.iter().find(|row| row.physical_id.as_deref() == Some(id));
        if let Some(stack) = found.and_then(|row| stacks.iter().find(|stack| stack.id == row.stack)) {
            return Ok(stack.clone());
        }
    }
    Err(Error::NotFound(format!("The Resource ({id})")).into())
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn resources_are_found_by_stack_or_by_object_but_not_by_both() {
        let app = App::new().await;
        app.create("app").await;
        let found = app.get("DescribeStackResources", &[("StackName", "app")]).await;
        assert_eq!(found.element("LogicalResourceId"), "value");
        let both = [("StackName", "app"), ("PhysicalResourceId", "x")];
        let refused = app.get("DescribeStackResources", &both).await;
        assert_eq!((refused.status.as_u16(), refused.element("Code")), (400, "InvalidParameterCombination"));
    }
}
