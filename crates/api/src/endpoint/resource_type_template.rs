//! `GET /resource_types/{name}/template`: a template with one resource of the type.

use axum::response::Response;
use kiln_resource::view::TemplateKind;
use kiln_value::{Diagnostic, argument};

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:generate_template")?;
    let kind = call.query.given("template_type").map(argument::template_type).transpose();
    let unknown =
        |error: Diagnostic| ApiError::bad_request(format!("Template type is not supported: {}", error.message));
    let kind = if kind.map_err(unknown)? == Some("hot") { TemplateKind::Hot } else { TemplateKind::Cfn };
    let found = call.service().resource_type(&call.caller, call.params.get("type_name"))?;
    Ok(reply::json(&found.template_view(kind)))
}
