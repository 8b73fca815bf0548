//! The parameters and resource types of a template, or of that of a stack.

use std::collections::{BTreeMap, BTreeSet};

use kiln_service::{Error, StackContent, importable};
use kiln_stack::load;
use kiln_value::{Map, Value, value};

use super::Action;
use super::parameter::{TEMPLATE, optional};
use crate::call::Call;
use crate::fault::Fault;
use crate::input;
use crate::view::parameter::parameter;

/// The handler asks for the rule of what it reads, too.
pub(super) static ACTION: Action = Action {
    name: "GetTemplateSummary",
    rule: "cloudformation:EstimateTemplateCost",
    parameters: &[&[optional("StackName", "Name or ARN of a stack, instead of a template")], TEMPLATE],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let template = input::template(call).await?;
    let (description, parameters, types, importable) = match (template, call.params.get("StackName")) {
        (Some(_), Some(_)) => return Err(Fault::combination("TemplateBody and StackName may not be used together")),
        (Some(template), None) => {
            call.allow("cloudformation:ValidateTemplate")?;
            let content =
                StackContent { sections: input::Parameters::default().sections()?, ..StackContent::default() };
            let valid = call.service().validate_template(&call.caller, &template, content, false, false).await?;
            (valid.summary.description, valid.summary.parameters, valid.resource_types, valid.importable)
        }
        (None, _) => {
            call.allow("cloudformation:GetTemplate")?;
            let stack = call.stack_or_deleted().await?;
            let blueprint = load::blueprint(call.backends(), &stack, &stack.desired).await?;
            let blueprint = blueprint.map_err(|error| Error::Internal(error.to_string()))?;
            let types = blueprint.definitions().values().map(|one| one.resource_type.clone()).collect();
            (
                blueprint.bound().template().description(),
                blueprint.parameters().validate_view(),
                types,
                importable(&blueprint),
            )
        }
    };
    Ok(summary(&description, &parameters, &types, &importable))
}

fn summary(
    description: &str,
    parameters: &Map,
    types: &BTreeSet<String>,
    importable: &BTreeMap<String, Vec<String>>,
) -> Value {
    let identifiers = importable.iter().map(|(resource_type, names)| {
        let names: Value = names.iter().map(String::as_str).collect();
        value!({
            "ResourceType": resource_type,
            "LogicalResourceIds": names,
            "ResourceIdentifiers": [(input::IDENTIFIER)],
        })
    });
    let identifiers: Value = identifiers.collect();
    let parameters: Value = parameters.iter().map(|(name, about)| parameter(name, about, true)).collect();
    value!({
        "Parameters": parameters,
        "Description": description,
        "Capabilities": [],
        "ResourceTypes": (types.iter().map(String::as_str).collect::<Value>()),
        "ResourceIdentifierSummaries": identifiers,
    })
}

#[cfg(test)]
mod tests {
    use crate::support::{App, TEMPLATE};

    #[tokio::test]
    async fn a_template_is_summarized_from_a_body_or_a_stack() {
        let app = App::new().await;
        app.create("app").await;
        for of in [("TemplateBody", TEMPLATE), ("StackName", "app")] {
            let summary = app.get("GetTemplateSummary", &[of]).await;
            assert!(summary.element("ResourceTypes").contains("OS::Heat::Value"), "{}", summary.text);
        }
        let both = app.get("GetTemplateSummary", &[("TemplateBody", TEMPLATE), ("StackName", "app")]).await;
        assert_eq!((both.status.as_u16(), both.element("Code")), (400, "InvalidParameterCombination"));
    }
}
