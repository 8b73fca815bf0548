//! `POST /validate`: whether a template may be used, and what it asks for.

use axum::response::Response;
use kiln_plan::{Blueprint, Kind, Place};
use kiln_value::{Map, StackIdentity, Value};

use crate::call::Call;
use crate::desired;
use crate::error::ApiError;
use crate::http::reply;
use crate::instantiation::Instantiation;
use crate::judge;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:validate_template")?;
    let body = Instantiation::new(call.body()?, &call.api.options.limits);
    let show_nested = call.query.boolean("show_nested")?.unwrap_or(false);
    let template = body.required_template()?;
    let extras = body.extras()?;
    refuse_codes(call)?;
    let sources = extras.sources(template.value.clone())?;
    let identity = StackIdentity::new(call.caller.project_id.clone(), "dummy", "None")?;
    let blueprint = desired::build(call, sources, identity, &template).map_err(as_bad_request)?;
    judge::judge(call, &blueprint, &template, false).await.map_err(as_bad_request)?;
    let mut answer = about(&blueprint)?;
    if show_nested {
        nested(call, &blueprint, &mut answer)?;
    }
    answer.insert("Environment".to_owned(), blueprint.sources().environment.to_value());
    Ok(reply::json(&Value::Map(answer)))
}

/// Only one code may be ignored, and only in the catalog, which a validation does not look at.
fn refuse_codes(call: &Call) -> Result<(), ApiError> {
    let codes = call.query.get("ignore_errors").unwrap_or_default();
    let unknown: Vec<&str> = codes.split(',').filter(|code| !code.is_empty() && *code != "99001").collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let codes = kiln_value::text::repr(&unknown.into_iter().collect::<Value>());
    Err(ApiError::bad_request(format!("Invalid codes in ignore_errors : {codes}")))
}

/// Heat reports a failed validation as the text of a bad request here.
fn as_bad_request(error: ApiError) -> ApiError {
    if error.class != "StackValidationFailed" {
        return error;
    }
    ApiError { class: "HTTPBadRequest".into(), ..error }
}

/// Description, parameters and their groups.
fn about(blueprint: &Blueprint) -> Result<Map, ApiError> {
    let template = blueprint.bound().template();
    let mut about = Map::new();
    about.insert("Description".to_owned(), template.description().into());
    about.insert("Parameters".to_owned(), blueprint.parameters().validate_view().into());
    if !template.parameter_groups()?.is_empty() {
        let groups = template.as_value().get("parameter_groups").cloned().unwrap_or_default();
        about.insert("ParameterGroups".to_owned(), groups);
    }
    Ok(about)
}

/// The parameters of templates that stand for types, and of those in them.
fn nested(call: &Call, blueprint: &Blueprint, answer: &mut Map) -> Result<(), ApiError> {
    let mut all = Map::new();
    let place = Place { facade: None, depth: blueprint.place.depth + 1 };
    if place.depth > call.api.options.limits.nested_depth {
        return Ok(());
    }
    for definition in blueprint.definitions().values() {
        let Some(Kind::Template(provider)) = blueprint.kind(&definition.name) else { continue };
        let sources = blueprint.provider_sources(definition, provider, &Map::new())?;
        let identity = blueprint.identity.clone();
        let nested_blueprint = Blueprint::build(sources, &call.api.world.catalog, identity, place.clone())?;
        let mut entry = Map::new();
        entry.insert("Type".to_owned(), (&definition.resource_type).into());
        entry.extend(about(&nested_blueprint)?);
        nested(call, &nested_blueprint, &mut entry)?;
        all.insert(definition.name.clone(), entry.into());
    }
    if !all.is_empty() {
        answer.insert("NestedParameters".to_owned(), all.into());
    }
    Ok(())
}
