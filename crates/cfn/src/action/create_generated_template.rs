//! Generates a template for objects in no stack. It is complete when the request is answered.

use kiln_value::{Value, value};

use super::Action;
use super::parameter::{TEMPLATE_CONFIGURATION, optional, required};
use crate::call::Call;
use crate::fault::Fault;
use crate::generated_template::{Head, KIND, Objects, WORD, check_name};

/// The handler asks for the rule of the REST call, too.
pub(super) static ACTION: Action = Action {
    name: "CreateGeneratedTemplate",
    rule: "cloudformation:DescribeStackResources",
    parameters: &[
        &[
            required("GeneratedTemplateName", "Name of the generated template"),
            optional("Resources", "ResourceType, ResourceIdentifier and LogicalResourceId of objects"),
            optional("StackName", "Refused: the template of a stack is not extended"),
        ],
        TEMPLATE_CONFIGURATION,
    ],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    call.allow("imports:write")?;
    let name = call.params.required("GeneratedTemplateName")?.to_owned();
    check_name(&name)?;
    if call.params.get("StackName").is_some() {
        return Err(Fault::invalid("StackName is not supported."));
    }
    let retains = call.retains()?.unwrap_or(false);
    let mut objects = Objects::new();
    call.add_objects("Resources", &mut objects)?;
    let body = call.generate(objects).await?;
    let head = Head { updated: call.backends().clock.now(), number: body.resources.len(), retains };
    let id = call.keep(KIND, Some(name), (&head, &body)).await?;
    Ok(value!({ "GeneratedTemplateId": (call.kept_arn(WORD, id)) }))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn what_is_given_is_checked() {
        let app = App::new().await;
        let name = ("GeneratedTemplateName", "found");
        let made = app.post("CreateGeneratedTemplate", &[name]).await;
        let id = made.element("GeneratedTemplateId");
        assert!(id.starts_with("arn:openstack:heat::tenant1:generatedtemplate/"), "{id}");
        let long = "n".repeat(129);
        let retain = ("TemplateConfiguration.UpdateReplacePolicy", "RETAIN");
        let other = ("TemplateConfiguration.DeletionPolicy", "KEEP");
        for (given, code, why) in [
            (&[][..], "MissingParameter", "GeneratedTemplateName"),
            (&[name], "AlreadyExistsException", "found already exists"),
            (&[("GeneratedTemplateName", "arn:x")], "ValidationError", "no ARN"),
            (&[("GeneratedTemplateName", long.as_str())], "ValidationError", "128"),
            (&[name, ("StackName", "web")], "InvalidParameterValue", "StackName is not supported"),
            (&[name, retain], "InvalidParameterValue", "UpdateReplacePolicy RETAIN is not supported"),
            (&[name, other], "InvalidParameterValue", "DELETE or RETAIN"),
            (&[name, ("Resources.member.1.ResourceType", "T")], "InvalidParameterValue", "PhysicalResourceId"),
        ] {
            let refused = app.post("CreateGeneratedTemplate", given).await;
            assert_eq!(refused.element("Code"), code, "{}", refused.text);
            assert!(refused.element("Message").contains(why), "{}", refused.text);
        }
        let object = [
            ("GeneratedTemplateName", "other"),
            ("Resources.member.1.ResourceType", "OS::Neutron::Net"),
            ("Resources.member.1.ResourceIdentifier.entry.1.key", "PhysicalResourceId"),
            ("Resources.member.1.ResourceIdentifier.entry.1.value", "n-1"),
        ];
        let refused = app.post("CreateGeneratedTemplate", &object).await;
        assert!(refused.element("Message").contains("the project has no such object"), "{}", refused.text);
    }
}
