//! `GET /resource_types/{name}/template`: a template with one resource of the type.

use axum::response::Response;
use kiln_resource::view::TemplateKind;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:generate_template")?;
    let kind = match call.query.given("template_type") {
        None => TemplateKind::Cfn,
        Some(kind) if kind.eq_ignore_ascii_case("cfn") => TemplateKind::Cfn,
        Some(kind) if kind.eq_ignore_ascii_case("hot") => TemplateKind::Hot,
        Some(kind) => {
            return Err(ApiError::bad_request(format!(
                "Template type is not supported: Invalid template type \"{kind}\", valid types are: cfn, hot."
            )));
        }
    };
    let found = call.service().resource_type(&call.caller, call.params.get("type_name"))?;
    Ok(reply::json(&found.template_view(kind)))
}
