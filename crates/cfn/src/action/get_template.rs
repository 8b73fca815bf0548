//! The template of a stack.

use kiln_stack::load;
use kiln_value::{Value, value};

use super::Action;
use super::parameter::STACK_NAME;
use crate::call::Call;
use crate::fault::Fault;

pub(super) static ACTION: Action = Action {
    name: "GetTemplate",
    rule: "cloudformation:GetTemplate",
    parameters: &[&[STACK_NAME]],
    run: |call| Box::pin(run(call)),
};

async fn run(call: &Call) -> Result<Value, Fault> {
    let stack = call.stack_or_deleted().await?;
    let sources = load::stored(call.backends(), &stack.desired).await?;
    Ok(value!({ "TemplateBody": (Value::clone(&sources.template)) }))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn the_template_of_a_stack_is_returned() {
        let app = App::new().await;
        app.create("app").await;
        let template = app.get("GetTemplate", &[("StackName", "app"), ("ContentType", "JSON")]).await.json();
        let body = &template["GetTemplateResponse"]["GetTemplateResult"]["TemplateBody"];
        assert_eq!(body["resources"]["value"]["type"], "OS::Heat::Value");
    }
}
