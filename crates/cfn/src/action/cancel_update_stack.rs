//! Cancels an update and returns to the state before it.

use kiln_service::StackAction;
use kiln_value::{Map, Value};

use super::Action;
use super::parameter::{STACK_NAME, TOKEN};
use crate::call::Call;
use crate::fault::Fault;

pub(super) static ACTION: Action = Action {
    name: "CancelUpdateStack",
    rule: "cloudformation:CancelUpdateStack",
    parameters: &[&[STACK_NAME, TOKEN]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let stack = call.stack().await?;
    call.service().act(&call.caller, &stack, StackAction::CancelUpdate).await?;
    Ok(Value::Map(Map::new()))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn only_an_update_can_be_cancelled() {
        let app = App::new().await;
        app.create("app").await;
        let refused = app.post("CancelUpdateStack", &[("StackName", "app")]).await;
        assert_eq!((refused.status.as_u16(), refused.element("Code")), (400, "InvalidParameterValue"));
        assert!(refused.element("Message").contains("when stack is CREATE_IN_PROGRESS"), "{}", refused.text);
    }
}
