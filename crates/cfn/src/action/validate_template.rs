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

#[cfg(test)]
mod tests {
    use crate::support::{App, TEMPLATE};

    #[tokio::test]
    async fn a_valid_template_has_a_description_and_parameters() {
        let app = App::new().await;
        let valid = app.post("ValidateTemplate", &[("TemplateBody", TEMPLATE)]).await;
        assert_eq!((valid.element("Description"), valid.element("ParameterKey")), ("one &amp; &lt;two&gt;", "key"));
        let refused = app.post("ValidateTemplate", &[("TemplateBody", "{}")]).await;
        assert_eq!(refused.status.as_u16(), 400, "{}", refused.text);
    }
}
