//! `POST /validate`: validates a template and returns its parameters.

use axum::response::Response;
use kiln_service::{Error, TemplateSummary};
use kiln_value::{Map, Value};

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:validate_template")?;
    let body = call.instantiation()?;
    let show_nested = call.query.boolean("show_nested")?.unwrap_or(false);
    let (template, content) = (body.required_template()?, body.content()?);
    let any = ignores_availability(call)?;
    let validated = call.service().validate_template(&call.caller, &template, content, show_nested, any).await;
    let validated = validated.map_err(refused)?;
    let mut answer = summary(validated.summary);
    answer.insert("Environment".to_owned(), validated.environment);
    Ok(reply::json(&Value::Map(answer)))
}

/// Whether types without a service are accepted (`ignore_errors`); other errors cannot be ignored.
fn ignores_availability(call: &Call) -> Result<bool, ApiError> {
    const UNAVAILABLE: &str = "99001";
    let codes = call.query.get("ignore_errors").unwrap_or_default();
    let codes = || codes.split(',').filter(|code| !code.is_empty());
    let unknown: Vec<&str> = codes().filter(|code| *code != UNAVAILABLE).collect();
    if unknown.is_empty() {
        return Ok(codes().any(|code| code == UNAVAILABLE));
    }
    let codes = kiln_value::text::repr(&unknown.into_iter().collect::<Value>());
    Err(ApiError::bad_request(format!("Invalid codes in ignore_errors : {codes}")))
}

/// Heat reports a failed validation as the text of a bad request here.
fn refused(error: Error) -> ApiError {
    let failed = matches!(error, Error::Invalid(_)) && error.class().is_some_and(|c| c == "StackValidationFailed");
    let text = error.to_string();
    let error = ApiError::from(error);
    if failed { ApiError { class: "HTTPBadRequest".into(), message: Some(text), ..error } } else { error }
}

/// Description, parameters and parameter groups, also of nested templates.
fn summary(summary: TemplateSummary) -> Map {
    let mut about = Map::new();
    about.insert("Description".to_owned(), summary.description.into());
    about.insert("Parameters".to_owned(), summary.parameters.into());
    about.extend(summary.parameter_groups.map(|groups| ("ParameterGroups".to_owned(), groups)));
    let mut nested = Map::new();
    for (name, template) in summary.nested {
        let mut entry = Map::new();
        entry.insert("Type".to_owned(), template.resource_type.into());
        entry.extend(self::summary(template.summary));
        nested.insert(name, entry.into());
    }
    if !nested.is_empty() {
        about.insert("NestedParameters".to_owned(), nested.into());
    }
    about
}
