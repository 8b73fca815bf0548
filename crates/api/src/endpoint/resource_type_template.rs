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
