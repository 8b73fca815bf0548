//! A generated template with its resources.

use kiln_value::Value;

use super::Action;
use super::parameter::GENERATED_TEMPLATE;
use crate::call::Call;
use crate::fault::Fault;

/// The handler asks for the rule of the REST call, too.
pub(super) static ACTION: Action = Action {
    name: "DescribeGeneratedTemplate",
    rule: "cloudformation:DescribeStackResources",
    parameters: &[&[GENERATED_TEMPLATE]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    call.allow("imports:write")?;
    let (sheet, head, body) = call.generated_template().await?;
    Ok(head.view(call, &sheet, &body))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_template_has_a_name_and_an_arn() {
        let app = App::new().await;
        let retain = ("TemplateConfiguration.DeletionPolicy", "RETAIN");
        let made = app.post("CreateGeneratedTemplate", &[("GeneratedTemplateName", "found"), retain]).await;
        let arn = made.element("GeneratedTemplateId");
        for named in ["found", arn] {
            let shown = app.get("DescribeGeneratedTemplate", &[("GeneratedTemplateName", named)]).await;
            assert_eq!((shown.element("GeneratedTemplateId"), shown.element("Status")), (arn, "COMPLETE"));
            assert_eq!((shown.element("DeletionPolicy"), shown.element("TotalWarnings")), ("RETAIN", "0"));
        }
        for named in ["none", &arn.replace("tenant1", "tenant2")] {
            for action in ["DescribeGeneratedTemplate", "GetGeneratedTemplate", "DeleteGeneratedTemplate"] {
                let missing = app.get(action, &[("GeneratedTemplateName", named)]).await;
                assert_eq!((missing.status.as_u16(), missing.element("Code")), (404, "GeneratedTemplateNotFound"));
            }
        }
    }
}
