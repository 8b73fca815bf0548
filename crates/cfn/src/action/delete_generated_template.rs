//! Deletes a generated template.

use kiln_value::{Map, Value};

use super::Action;
use super::parameter::GENERATED_TEMPLATE;
use crate::call::Call;
use crate::fault::Fault;

/// The handler asks for the rule of the REST call, too.
pub(super) static ACTION: Action = Action {
    name: "DeleteGeneratedTemplate",
    rule: "cloudformation:DescribeStackResources",
    parameters: &[&[GENERATED_TEMPLATE]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    call.allow("imports:write")?;
    let (sheet, ..) = call.generated_template().await?;
    call.discard(&sheet).await?;
    Ok(Value::Map(Map::new()))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_deleted_template_is_gone_and_its_name_is_free() {
        let app = App::new().await;
        let name = [("GeneratedTemplateName", "found")];
        app.post("CreateGeneratedTemplate", &name).await;
        assert_eq!(app.post("DeleteGeneratedTemplate", &name).await.status.as_u16(), 200);
        assert_eq!(app.post("DeleteGeneratedTemplate", &name).await.status.as_u16(), 404);
        assert_eq!(app.post("CreateGeneratedTemplate", &name).await.status.as_u16(), 200);
    }
}
