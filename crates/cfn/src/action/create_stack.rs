//! Creates a stack.

use kiln_service::{ADD_GUARD, CreateStack, StackContent};
use kiln_value::{Value, value};

use super::Action;
use super::parameter::{PARAMETERS, SETTINGS, STACK_NAME, TEMPLATE, TOKEN, optional};
use super::set_stack_policy::policy;
use crate::call::Call;
use crate::fault::Fault;
use crate::input;
use crate::params::Parameter;
use crate::view::arn;

pub(super) static ACTION: Action = Action {
    name: "CreateStack",
    rule: "cloudformation:CreateStack",
    parameters: &[&[STACK_NAME, PARAMETERS, TOKEN], TEMPLATE, SETTINGS, GUARDS],
    run: |call| Box::pin(run(call)),
};

/// What protects the new stack.
const GUARDS: &[Parameter] = &[
    optional("EnableTerminationProtection", "Whether the stack cannot be deleted"),
    optional("StackPolicyBody", "The stack policy as JSON"),
];

async fn run(call: &Call) -> Result<Value, Fault> {
    let params = &call.params;
    let name = params.required("StackName")?.to_owned();
    let settings = input::settings(params)?;
    let template = input::template(call).await?;
    let template = template.ok_or_else(input::no_template)?;
    let parameters = input::Parameters::of(params)?;
    if let Some(name) = parameters.previous.first() {
        return Err(Fault::invalid(&format!("Parameter {name} of a new stack has no previous value.")));
    }
    let content = StackContent { sections: parameters.sections()?, ..StackContent::default() };
    let new = CreateStack { name, template, content, settings, adopt: None };
    let (protect, policy) =
        (params.boolean("EnableTerminationProtection")?.unwrap_or(false), policy(call, "StackPolicyBody")?);
    if protect || policy.is_some() {
        call.allow(ADD_GUARD.name)?;
        call.service().refuse_older_engines_to("A guard").await?;
    }
    let stack = call.service().create_stack(&call.caller, new).await?;
    if let Some(policy) = policy {
        call.service().set_stack_policy(&call.caller, &stack, policy).await?;
    }
    if protect {
        call.service().protect_from_deletion(&call.caller, &stack, true).await?;
    }
    Ok(value!({ "StackId": (arn(&stack, "")) }))
}

#[cfg(test)]
mod tests {
    use crate::support::{App, TEMPLATE};

    #[tokio::test]
    async fn a_new_stack_has_an_arn_and_needs_a_template() {
        let app = App::new().await;
        let made = app.post("CreateStack", &[("StackName", "app"), ("TemplateBody", TEMPLATE)]).await;
        assert!(made.element("StackId").starts_with("arn:openstack:heat::tenant1:stacks/app/"), "{}", made.text);
        let refused = app.post("CreateStack", &[("StackName", "other")]).await;
        assert_eq!((refused.status.as_u16(), refused.element("Code")), (400, "MissingParameter"), "{}", refused.text);
    }
}
