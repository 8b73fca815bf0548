//! Changes a generated template. What it says of its objects is read again if the objects change, or on request.

use kiln_value::{Value, value};

use super::Action;
use super::parameter::{GENERATED_TEMPLATE, TEMPLATE_CONFIGURATION, optional};
use crate::call::Call;
use crate::fault::Fault;
use crate::generated_template::{Body, Head, WORD, check_name};

/// The handler asks for the rule of the REST call, too.
pub(super) static ACTION: Action = Action {
    name: "UpdateGeneratedTemplate",
    rule: "cloudformation:DescribeStackResources",
    parameters: &[
        &[
            GENERATED_TEMPLATE,
            optional("NewGeneratedTemplateName", "New name of the generated template"),
            optional("AddResources", "ResourceType, ResourceIdentifier and LogicalResourceId of more objects"),
            optional("RemoveResources", "Names of resources that it shall not have any more"),
            optional("RefreshAllResources", "Whether all objects are read again"),
        ],
        TEMPLATE_CONFIGURATION,
    ],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    call.allow("imports:write")?;
    let (mut sheet, head, body) = call.generated_template().await?;
    if let Some(name) = call.params.get("NewGeneratedTemplateName") {
        check_name(name)?;
        sheet.name = Some(name.to_owned());
    }
    let retains = call.retains()?.unwrap_or(head.retains);
    let body = changed(call, body).await?;
    let head = Head { updated: call.backends().clock.now(), number: body.resources.len(), retains };
    if !call.keep_changed(&sheet, (&head, &body)).await? {
        return Err(Fault::validation("The generated template is being changed: try again"));
    }
    Ok(value!({ "GeneratedTemplateId": (call.kept_arn(WORD, sheet.id)) }))
}

async fn changed(call: &Call, body: Body) -> Result<Body, Fault> {
    let mut objects = body.objects();
    let mut removed = Vec::new();
    for name in call.params.list("RemoveResources") {
        let resource = body.resources.iter().find(|one| one.name == name);
        let resource = resource.ok_or_else(|| Fault::validation(format!("The template has no resource {name}")))?;
        objects.remove(&resource.key());
        removed.push(resource.key());
    }
    call.add_objects("AddResources", &mut objects)?;
    if objects == body.objects() && call.params.boolean("RefreshAllResources")? != Some(true) {
        return Ok(body);
    }
    let new = call.generate(objects).await?;
    match new.resources.iter().find(|one| removed.contains(&one.key())) {
        Some(part) => {
            let text = format!("{} is a part of another resource and cannot be removed alone", part.name);
            Err(Fault::validation(text))
        }
        None => Ok(new),
    }
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_template_gets_another_name_and_policy() {
        let app = App::new().await;
        let (one, two) = (("GeneratedTemplateName", "one"), ("GeneratedTemplateName", "two"));
        app.post("CreateGeneratedTemplate", &[one]).await;
        app.post("CreateGeneratedTemplate", &[two]).await;
        let taken = app.post("UpdateGeneratedTemplate", &[one, ("NewGeneratedTemplateName", "two")]).await;
        assert_eq!(taken.element("Code"), "AlreadyExistsException", "{}", taken.text);
        let retain = ("TemplateConfiguration.DeletionPolicy", "RETAIN");
        let renamed = [one, ("NewGeneratedTemplateName", "three"), retain, ("RefreshAllResources", "true")];
        assert_eq!(app.post("UpdateGeneratedTemplate", &renamed).await.status.as_u16(), 200);
        let shown = app.get("DescribeGeneratedTemplate", &[("GeneratedTemplateName", "three")]).await;
        assert_eq!(shown.element("DeletionPolicy"), "RETAIN", "{}", shown.text);
        let removed = app.post("UpdateGeneratedTemplate", &[two, ("RemoveResources.member.1", "net")]).await;
        assert!(removed.element("Message").contains("has no resource net"), "{}", removed.text);
    }
}
