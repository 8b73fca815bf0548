//! `GET /resource_types/{name}/template`: a template with one resource of the type.

use std::future::ready;

use axum::response::Response;
use http::Method;
use kiln_resource::view::TemplateKind;
use kiln_value::Diagnostic;

use super::{Answer, Endpoint, Rule};
use crate::argument;
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ResourceTypeTemplate",
    method: Method::GET,
    path: "/{tenant_id}/resource_types/{type_name}/template",
    rule: Rule::Of("stacks:generate_template"),
    tag: "resource types",
    summary: "Show a template with one resource of a type",
    query: &[("template_type", "text")],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(ready(run(call))),
};

fn run(call: &Call) -> Result<Response, ApiError> {
    let kind = call.query.given("template_type").map(argument::template_type).transpose();
    let unknown = |error: Diagnostic| ApiError::bad_request(format!("Template type is not supported: {error}"));
    let kind = if kind.map_err(unknown)? == Some("hot") { TemplateKind::Hot } else { TemplateKind::Cfn };
    let found = call.service().resource_type(&call.caller, call.params.get("type_name"))?;
    Ok(reply::json(&found.template_view(kind)))
}

#[cfg(test)]
mod tests {
    use crate::support::App;

    #[tokio::test]
    async fn a_type_becomes_a_template_of_either_language() {
        let app = App::new().await;
        let path = "/v1/tenant1/resource_types/OS::Heat::Value/template";
        let cfn = app.get(path).await.json();
        assert!(cfn["Parameters"]["value"]["Type"].is_string(), "{cfn}");
        let hot = app.get(&format!("{path}?template_type=hot")).await.json();
        assert_eq!(hot["resources"]["Value"]["type"], "OS::Heat::Value", "{hot}");
        assert_eq!(app.get(&format!("{path}?template_type=tosca")).await.status.as_u16(), 400);
    }
}
