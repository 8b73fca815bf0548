//! Compares a resource with its object.

use kiln_value::{Value, value};

use super::Action;
use super::parameter::{LOGICAL_ID, STACK_NAME};
use crate::call::Call;
use crate::fault::Fault;
use crate::view::property_differences;

pub(super) static ACTION: Action = Action {
    name: "DetectStackResourceDrift",
    rule: "cloudformation:DescribeStackResources",
    parameters: &[&[STACK_NAME, LOGICAL_ID]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let name = call.params.required("LogicalResourceId")?.to_owned();
    let compared = call.service().drift(call.stack().await?, &[name]).await?;
    let shown = compared.resources.first().map(|one| property_differences::resource(call, &compared, one));
    Ok(value!({ "StackResourceDrift": shown }))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn the_resource_must_be_named_and_exist() {
        let app = App::new().await;
        app.create("app").await;
        let none = [("StackName", "app"), ("LogicalResourceId", "none")];
        let missing = app.post("DetectStackResourceDrift", &none).await;
        assert!(missing.element("Message").contains("The Resource (none) could not be found"), "{}", missing.text);
        let refused = app.post("DetectStackResourceDrift", &none[..1]).await;
        assert_eq!((refused.status.as_u16(), refused.element("Code")), (400, "MissingParameter"));
    }
}
