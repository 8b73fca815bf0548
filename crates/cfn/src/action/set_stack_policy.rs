//! Sets the stack policy of a stack: what its updates may do with its resources.

use kiln_resource::StackPolicy;
use kiln_service::{ADD_GUARD, LIFT_GUARD};
use kiln_value::Value;

use super::Action;
use super::parameter::{STACK_NAME, required};
use crate::call::Call;
use crate::fault::Fault;

pub(super) static ACTION: Action = Action {
    name: "SetStackPolicy",
    rule: "cloudformation:UpdateStack",
    parameters: &[&[STACK_NAME, required("StackPolicyBody", "The policy as JSON")]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let stack = call.stack().await?;
    let policy = policy(call, "StackPolicyBody")?.ok_or_else(|| Fault::missing("StackPolicyBody was not given."))?;
    // A policy cannot be deleted, only replaced by another one.
    call.allow(if call.service().stack_policy(&stack).await?.is_some() { LIFT_GUARD.name } else { ADD_GUARD.name })?;
    call.service().set_stack_policy(&call.caller, &stack, policy).await?;
    Ok("".into())
}

/// The stack policy in a parameter of a request.
pub(super) fn policy(call: &Call, parameter: &str) -> Result<Option<StackPolicy>, Fault> {
    let given = call.params.get(parameter).map(|text| StackPolicy::try_from(text.to_owned()));
    given.transpose().map_err(|error| Fault::validation(error.to_string()))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_policy_is_replaced_and_must_be_one() {
        let app = App::new().await;
        app.create("app").await;
        let set =
            async |body: &str| app.post("SetStackPolicy", &[("StackName", "app"), ("StackPolicyBody", body)]).await;
        let shown = async || {
            let answer = app.get("GetStackPolicy", &[("StackName", "app")]).await;
            answer.element("StackPolicyBody").replace("&quot;", "\"")
        };
        for body in [r#"{"Statement": []}"#, r#"{"Statement":[], "Id": "two"}"#] {
            assert_eq!(set(body).await.status.as_u16(), 200);
            assert_eq!(shown().await, body);
        }
        let refused = set("{}").await;
        assert_eq!((refused.status.as_u16(), refused.element("Code")), (400, "ValidationError"));
        assert_eq!(refused.element("Message"), "Error validating stack policy: it has no list Statement");
        assert_eq!(shown().await, r#"{"Statement":[], "Id": "two"}"#);
    }
}
