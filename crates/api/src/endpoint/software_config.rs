//! `…/software_configs`.

use axum::response::Response;
use http::Method;
use http::StatusCode;
use kiln_service::NewConfig;
use kiln_store::ConfigQuery;
use kiln_value::{Map, Value, text, value};

use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::Formats;
use crate::http::reply;
use crate::openapi::schema;

pub(super) static LIST: Endpoint = Endpoint {
    name: "ListConfigs",
    method: Method::GET,
    path: "/{tenant_id}/software_configs",
    rule: Rule::Of("software_configs:index"),
    tag: "software",
    summary: "List software configs",
    query: &[("global_tenant", "bool"), ("limit", "integer"), ("marker", "text")],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(list(call)),
};

pub(super) static CREATE: Endpoint = Endpoint {
    name: "CreateConfig",
    method: Method::POST,
    path: "/{tenant_id}/software_configs",
    rule: Rule::Of("software_configs:create"),
    tag: "software",
    summary: "Create a software config",
    query: &[],
    body: Some(&BODY),
    answer: Answer::Json(200),
    run: |call| Box::pin(create(call)),
};

static BODY: Body = Body {
    name: "Config",
    required: true,
    is_template: false,
    schema: || {
        value!({
            "type": "object",
            "properties": {
                "name": (schema::text()), "group": (schema::text()), "config": {}, "inputs": (schema::list()),
                "outputs": (schema::list()), "options": (schema::object()),
            },
        })
    },
};

pub(super) static SHOW: Endpoint = Endpoint {
    name: "ShowConfig",
    method: Method::GET,
    path: "/{tenant_id}/software_configs/{config_id}",
    rule: Rule::Of("software_configs:show"),
    tag: "software",
    summary: "Show a software config",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(show(call)),
};

pub(super) static DELETE: Endpoint = Endpoint {
    name: "DeleteConfig",
    method: Method::DELETE,
    path: "/{tenant_id}/software_configs/{config_id}",
    rule: Rule::Of("software_configs:delete"),
    tag: "software",
    summary: "Delete a software config",
    query: &[],
    body: None,
    answer: Answer::Nothing,
    run: |call| Box::pin(delete(call)),
};

/// `GET …/software_configs`.
async fn list(call: &Call) -> Result<Response, ApiError> {
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
async fn create(call: &Call) -> Result<Response, ApiError> {
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
async fn show(call: &Call) -> Result<Response, ApiError> {
    let config = call.service().config(&call.caller, call.params.get("config_id")).await?;
    Ok(reply::json(&value!({ "software_config": (config.view()) })))
}

/// `DELETE …/software_configs/{id}`.
async fn delete(call: &Call) -> Result<Response, ApiError> {
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

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::App;

    #[tokio::test]
    async fn a_config_is_made_listed_shown_and_deleted() {
        let app = App::new().await;
        let (path, body) = ("/v1/tenant1/software_configs", json!({"name": "c", "group": "script", "config": "true"}));
        let made = app.json(Method::POST, path, &body).await.json()["software_config"].clone();
        assert_eq!((&made["name"], &made["config"], &made["inputs"]), (&"c".into(), &"true".into(), &json!([])));
        let listed = app.get(path).await.json()["software_configs"][0].clone();
        assert_eq!((&listed["id"], listed.get("config")), (&made["id"], None), "a list has no contents");
        let one = format!("{path}/{}", made["id"].as_str().unwrap());
        assert_eq!(app.get(&one).await.json()["software_config"], made);
        assert_eq!(app.send(Method::DELETE, &one, None, None).await.status.as_u16(), 204);
        assert_eq!(app.get(&one).await.status.as_u16(), 404);
    }
}
