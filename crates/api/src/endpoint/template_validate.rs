//! `POST /validate`: whether a template may be used, and what it asks for.

use axum::response::Response;
use kiln_plan::{Blueprint, Draft, Kind, Nesting, Sources};
use kiln_resource::{Facts, properties};
use kiln_template::Definition;
use kiln_value::{Diagnostic, Map, StackIdentity, Value};

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
    let ignores_availability = ignores_availability(call)?;
    let sources = extras.sources(template.value.clone())?;
    let identity = StackIdentity::new(call.caller.project_id.clone(), "dummy", "None")?;
    let blueprint = desired::build(call, sources, identity, &template).map_err(as_bad_request)?;
    let availability = judge::availability(call, &blueprint).await;
    let availability = Some(&availability).filter(|_| !ignores_availability);
    judge::judge(call, &blueprint, &template, false, availability).await.map_err(as_bad_request)?;
    let mut answer = about(&blueprint)?;
    if show_nested {
        nested(call, &blueprint, &mut answer)?;
    }
    answer.insert("Environment".to_owned(), blueprint.sources().environment.to_value());
    Ok(reply::json(&Value::Map(answer)))
}

/// Whether types without a service are right (`ignore_errors`); no other error may be ignored.
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

/// What the nested stack of a resource is made of; of a group one member, as Heat shows it.
fn inside(blueprint: &Blueprint, definition: &Definition) -> Result<Option<Sources>, ApiError> {
    let Some(kind) = blueprint.kind(&definition.name) else { return Ok(None) };
    if !kind.is_nested() {
        return Ok(None);
    }
    let resource_type = kind.resource_type();
    // Heat gives what properties raise as Python's own error here.
    let given = blueprint.draft_properties(definition, &Draft::of(blueprint));
    let (given, _) = given.map_err(|error| Diagnostic::new("ValueError", error.message.clone()))?;
    let mut properties = properties::resolve(&resource_type.properties, &given)?;
    match kind {
        Kind::Template(provider) => Ok(Some(blueprint.provider_sources(definition, provider, &properties)?)),
        Kind::Type(entry) => {
            if let Some(count) = properties.get_mut("count") {
                *count = Value::Int(1);
            }
            let facts = Facts {
                name: definition.name.clone(),
                resource_type: resource_type.name.clone(),
                properties,
                given: given.keys().cloned().collect(),
                ..Facts::default()
            };
            let nested = entry.driver.nested(&facts, &blueprint.wanted_paths(&definition.name)).transpose()?;
            Ok(nested.map(|nested| blueprint.group_sources(definition, nested)).transpose()?)
        }
    }
}

/// The parameters of templates that stand for types, and of those in them.
fn nested(call: &Call, blueprint: &Blueprint, answer: &mut Map) -> Result<(), ApiError> {
    let mut all = Map::new();
    let place = Nesting { facade: None, depth: blueprint.place.depth + 1 };
    if place.depth > call.api.options.limits.nested_depth {
        return Ok(());
    }
    for definition in blueprint.definitions().values() {
        let Some(sources) = inside(blueprint, definition)? else { continue };
        let identity = blueprint.identity.clone();
        let nested_blueprint = Blueprint::build(sources, &call.api.backends.resource_types, identity, place.clone())?;
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
