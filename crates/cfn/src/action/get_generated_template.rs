//! The text of a generated template.

use kiln_value::{Value, value};

use super::Action;
use super::parameter::{GENERATED_TEMPLATE, optional};
use crate::call::Call;
use crate::fault::Fault;

/// The handler asks for the rule of the REST call, too.
pub(super) static ACTION: Action = Action {
    name: "GetGeneratedTemplate",
    rule: "cloudformation:DescribeStackResources",
    parameters: &[&[GENERATED_TEMPLATE, optional("Format", "JSON (the default) or YAML, with comments")]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    call.allow("imports:write")?;
    let (_, head, body) = call.generated_template().await?;
    let template = match call.params.get("Format").unwrap_or("JSON") {
        "JSON" => body.template(&head),
        "YAML" => body.yaml(&head).ok_or_else(|| Fault::invalid("the template cannot be written as YAML"))?.into(),
        other => return Err(Fault::invalid(&format!("Format must be JSON or YAML, not \"{other}\""))),
    };
    Ok(value!({ "Status": "COMPLETE", "TemplateBody": template }))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_template_is_json_or_yaml() {
        let app = App::new().await;
        let name = ("GeneratedTemplateName", "found");
        app.post("CreateGeneratedTemplate", &[name]).await;
        let of = async |format| app.get("GetGeneratedTemplate", &[name, ("Format", format)]).await;
        let json = of("JSON").await;
        assert!(json.element("TemplateBody").starts_with("{\"heat_template_version\""), "{}", json.text);
        let yaml = of("YAML").await;
        assert!(yaml.element("TemplateBody").starts_with("heat_template_version: 2018-08-31"), "{}", yaml.text);
        assert_eq!(of("XML").await.element("Code"), "InvalidParameterValue");
    }
}
