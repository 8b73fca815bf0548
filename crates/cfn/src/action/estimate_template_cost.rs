//! The cost of a template: there is none.

use kiln_value::value;

use super::Action;

pub(super) static ACTION: Action = Action {
    name: "EstimateTemplateCost",
    rule: "cloudformation:EstimateTemplateCost",
    parameters: &[],
    run: |_| Box::pin(async { Ok(value!({ "Url": "http://en.wikipedia.org/wiki/Gratis" })) }),
};

#[cfg(test)]
mod tests {
    use crate::support::{App, TEMPLATE};

    #[tokio::test]
    async fn an_estimate_has_a_url() {
        let app = App::new().await;
        let estimate = app.post("EstimateTemplateCost", &[("TemplateBody", TEMPLATE)]).await;
        assert!(estimate.element("Url").starts_with("http"), "{}", estimate.text);
    }
}
