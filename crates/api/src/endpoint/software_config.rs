//! `…/software_configs`.

use axum::response::Response;
use http::StatusCode;
use kiln_service::NewConfig;
use kiln_store::ConfigQuery;
use kiln_value::{Map, Value, text, value};

use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::Formats;
use crate::http::reply;

/// `GET …/software_configs`.
pub(crate) async fn list(call: &Call) -> Result<Response, ApiError> {
    call.allow("software_configs:index")?;
    let everywhere = call.query.boolean("global_tenant")?.unwrap_or(false);
    if everywhere {
        call.enforce("software_configs:global_index", &call.caller.project_id)?;
    }
    let limit = call.query.integer("limit")?.and_then(|limit| u64::try_from(limit).ok());
    let all = everywhere || call.caller.is_admin;
    let query = ConfigQuery {
        project: (!all).then(|| call.caller.project_id.clone()),
        marker: call.query.get("marker").map(str::to_owned),
        limit,
    };
    let configs = call.store().software_configs(&query).await?;
    let entries = configs.iter().map(|config| {
        let mut entry = config.summary();
        if all {
            entry.insert("project".to_owned(), config.project.as_str().into());
        }
        Value::from(entry)
    });
    Ok(reply::json(&value!({ "software_configs": (entries.collect::<Value>()) })))
}

/// `POST …/software_configs`.
pub(crate) async fn create(call: &Call) -> Result<Response, ApiError> {
    call.allow("software_configs:create")?;
    let body = call.body()?;
    let given = |key: &str| body.get(key).cloned().unwrap_or_default();
    let new = NewConfig {
        name: optional_text(body, "name"),
        group: optional_text(body, "group"),
        config: given("config"),
        inputs: schemas(given("inputs"))?,
        outputs: schemas(given("outputs"))?,
        options: given("options"),
    };
    let config = call.service().create_config(&call.caller, new).await?;
    Ok(reply::json(&value!({ "software_config": (config.view()) })))
}

/// `GET …/software_configs/{id}`.
pub(crate) async fn show(call: &Call) -> Result<Response, ApiError> {
    call.allow("software_configs:show")?;
    let config = call.service().config(&call.caller, call.params.get("config_id")).await?;
    Ok(reply::json(&value!({ "software_config": (config.view()) })))
}

/// `DELETE …/software_configs/{id}`.
pub(crate) async fn delete(call: &Call) -> Result<Response, ApiError> {
    call.allow("software_configs:delete")?;
    call.service().delete_config(&call.caller, call.params.get("config_id")).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

/// A text; other values as Python prints them.
pub(super) fn optional_text(body: &Map, key: &str) -> Option<String> {
    body.get(key).filter(|value| !value.is_null()).map(text::str)
}

/// Inputs or outputs: a list of maps. As in Heat, an empty value of another type is an empty list.
fn schemas(given: Value) -> Result<Vec<Value>, ApiError> {
    match given {
        Value::List(list) if list.iter().all(|item| item.as_map().is_some()) => Ok(list),
        given if !given.is_truthy() => Ok(Vec::new()),
        _ => Err(ApiError::malformed()),
    }
}
