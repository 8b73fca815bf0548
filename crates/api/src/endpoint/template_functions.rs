//! `GET /template_versions/{version}/functions`.

use axum::response::Response;
use kiln_template::Release;
use kiln_value::{Value, value};

use super::template_versions::{full_alias, full_name};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::{query, reply};

pub(crate) fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:list_template_functions")?;
    let with_conditions = match call.query.given("with_condition_func") {
        Some(text) => query::boolean("with_condition_func", &text.into())?,
        None => false,
    };
    let version = call.params.get("template_version");
    let named = |release: &Release| full_name(*release) == version || full_alias(*release).as_deref() == Some(version);
    let release = Release::ALL.into_iter().find(named);
    let release =
        release.ok_or_else(|| ApiError::new("NotFound", format!("Template with version {version} not found")))?;
    let functions: Value = kiln_template::functions(release, with_conditions)
        .into_iter()
        .map(|function| value!({ "functions": (function.name), "description": (function.summary) }))
        .collect();
    Ok(reply::json(&value!({ "template_functions": functions })))
}
