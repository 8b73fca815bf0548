//! Validates a template and describes its parameters.

use kiln_service::StackContent;
use kiln_value::{Value, value};

use super::Action;
use super::parameter::TEMPLATE;
use crate::call::Call;
use crate::fault::Fault;
use crate::input;
use crate::view::parameter::parameter;

pub(super) static ACTION: Action = Action {
    name: "ValidateTemplate",
    rule: "cloudformation:ValidateTemplate",
    parameters: &[TEMPLATE],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let template = input::template(call).await?;
    let template = template.ok_or_else(input::no_template)?;
    let sections = input::Parameters::default().sections()?;
    let content = StackContent { sections, ..StackContent::default() };
    let validated = call.service().validate_template(&call.caller, &template, content, false, false).await?;
    let parameters: Value =
        validated.summary.parameters.iter().map(|(name, about)| parameter(name, about, false)).collect();
    Ok(value!({ "Description": (&validated.summary.description), "Parameters": parameters }))
}
