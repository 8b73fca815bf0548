//! Shows the stack policy of a stack, if it has one.

use kiln_value::{Value, value};

use super::Action;
use super::parameter::STACK_NAME;
use crate::call::Call;
use crate::fault::Fault;

pub(super) static ACTION: Action = Action {
    name: "GetStackPolicy",
    rule: "cloudformation:DescribeStacks",
    parameters: &[&[STACK_NAME]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let policy = call.service().stack_policy(&call.stack().await?).await?;
    Ok(value!({ "StackPolicyBody": (policy.map(|policy| policy.text().to_owned())) }))
}

#[cfg(test)]
mod tests {
    use crate::support::{App, TEMPLATE};

    #[tokio::test]
    async fn a_stack_has_the_policy_that_it_was_created_with_or_none() {
        let app = App::new().await;
        app.create("none").await;
        let none = app.get("GetStackPolicy", &[("StackName", "none")]).await;
        assert_eq!((none.status.as_u16(), none.text.contains("StackPolicyBody")), (200, false), "{}", none.text);
        let given = [
            ("StackName", "app"),
            ("TemplateBody", TEMPLATE),
            ("StackPolicyBody", r#"{"Statement":[]}"#),
            ("EnableTerminationProtection", "true"),
        ];
        assert_eq!(app.post("CreateStack", &given).await.status.as_u16(), 200);
        let shown = app.get("GetStackPolicy", &[("StackName", "app")]).await;
        assert_eq!(shown.element("StackPolicyBody").replace("&quot;", "\""), r#"{"Statement":[]}"#);
        let described = app.get("DescribeStacks", &[("StackName", "app")]).await;
        assert_eq!(described.element("EnableTerminationProtection"), "true");
    }
}
