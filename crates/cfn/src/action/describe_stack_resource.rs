//! One resource with its metadata, which agents in servers poll.

use kiln_service::Error;
use kiln_value::{Map, Value};

use super::Action;
use super::parameter::{LOGICAL_ID, STACK_NAME};
use crate::call::Call;
use crate::fault::Fault;
use crate::view::resource::Resources;

pub(super) static ACTION: Action = Action {
    name: "DescribeStackResource",
    rule: "cloudformation:DescribeStackResource",
    parameters: &[&[STACK_NAME, LOGICAL_ID]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let name = call.params.required("LogicalResourceId")?;
    let stack = call.stack().await?;
    let resources = Resources::of(call, stack).await?;
    let row = resources.rows().iter().find(|row| row.name == name);
    call.service().refuse_other_stack_user(&call.caller, name, resources.rows())?;
    let missing = || Error::NoResource { resource: name.to_owned(), stack: resources.stack().name.clone() };
    let row = row.ok_or_else(missing)?;
    let mut shown = resources.detail(row);
    let metadata = call.service().metadata_of(resources.stack(), row).await?;
    shown.insert("Metadata".to_owned(), metadata);
    Ok(Value::Map(Map::from([("StackResourceDetail".to_owned(), shown.into())])))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_resource_is_described_by_its_logical_id() {
        let app = App::new().await;
        app.create("app").await;
        let describe =
            async |name| app.get("DescribeStackResource", &[("StackName", "app"), ("LogicalResourceId", name)]).await;
        assert_eq!(describe("value").await.element("ResourceType"), "OS::Heat::Value");
        let missing = describe("none").await;
        assert!(missing.status.as_u16() >= 400 && missing.element("Message").contains("none"), "{}", missing.text);
    }
}
