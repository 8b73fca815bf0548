//! Requests a comparison of a stack with its objects. It is made when the client asks for its result, so that it is
//! never older than the question, and nothing is lost if a process fails.

use kiln_service::Error;
use kiln_value::{Value, value};

use super::Action;
use super::parameter::{STACK_NAME, optional};
use crate::call::Call;
use crate::fault::Fault;
use crate::view::property_differences::detection;

pub(super) static ACTION: Action = Action {
    name: "DetectStackDrift",
    rule: "cloudformation:DescribeStackResources",
    parameters: &[&[STACK_NAME, optional("LogicalResourceIds", "Only these resources")]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let names = call.params.list("LogicalResourceIds");
    let stack = call.stack().await?;
    let view = call.service().view(stack).await?;
    if let Some(missing) = names.iter().find(|name| view.resource(name).is_none()) {
        let (resource, stack) = ((*missing).to_owned(), view.stack.name.clone());
        return Err(Error::NoResource { resource, stack }.into());
    }
    Ok(value!({ "StackDriftDetectionId": (detection(&view.stack, &names)) }))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_detection_is_of_resources_that_exist() {
        let app = App::new().await;
        app.create("app").await;
        let detected = app.post("DetectStackDrift", &[("StackName", "app")]).await;
        assert!(!detected.element("StackDriftDetectionId").is_empty());
        let names = [("StackName", "app"), ("LogicalResourceIds.member.1", "none")];
        let refused = app.post("DetectStackDrift", &names).await;
        assert!(refused.status.as_u16() >= 400 && refused.element("Message").contains("none"), "{}", refused.text);
    }
}
