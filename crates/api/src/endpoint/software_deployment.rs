//! `…/software_deployments`.

use axum::response::Response;
use http::Method;
use http::StatusCode;
use kiln_resource::SoftwareDeployment;
use kiln_service::{DeploymentChange, NewDeployment};
use kiln_value::{Class, Value, text, value};

use super::software_config::optional_text;
use super::{Answer, Body, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::openapi::schema;

pub(super) static LIST: Endpoint = Endpoint {
    name: "ListDeployments",
    method: Method::GET,
    path: "/{tenant_id}/software_deployments",
    rule: Rule::Of("software_deployments:index"),
    tag: "software",
    summary: "List software deployments",
    query: &[("server_id", "text")],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(list(call)),
};

pub(super) static CREATE: Endpoint = Endpoint {
    name: "CreateDeployment",
    method: Method::POST,
    path: "/{tenant_id}/software_deployments",
    rule: Rule::Of("software_deployments:create"),
    tag: "software",
    summary: "Create a software deployment",
    query: &[],
    body: Some(&NEW),
    answer: Answer::Json(200),
    run: |call| Box::pin(create(call)),
};

static NEW: Body = Body {
    name: "CreateDeployment",
    required: true,
    is_template: false,
    schema: || with(value!({ "server_id": (schema::text()), "stack_user_project_id": (schema::text()) })),
};

static CHANGED: Body = Body {
    name: "UpdateDeployment",
    required: true,
    is_template: false,
    schema: || with(value!({ "output_values": (schema::object()) })),
};

/// The schema of a deployment with more keys.
fn with(more: Value) -> Value {
    let mut properties = value!({
        "config_id": (schema::text()), "input_values": (schema::object()), "action": (schema::text()),
        "status": (schema::text()), "status_reason": (schema::text()),
    });
    if let (Some(properties), Value::Map(more)) = (properties.as_map_mut(), more) {
        properties.extend(more);
    }
    value!({ "type": "object", "properties": properties })
}

pub(super) static METADATA: Endpoint = Endpoint {
    name: "DeploymentMetadata",
    method: Method::GET,
    path: "/{tenant_id}/software_deployments/metadata/{server_id}",
    rule: Rule::Of("software_deployments:metadata"),
    tag: "software",
    summary: "Show the deployments of a server",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(metadata(call)),
};

pub(super) static SHOW: Endpoint = Endpoint {
    name: "ShowDeployment",
    method: Method::GET,
    path: "/{tenant_id}/software_deployments/{deployment_id}",
    rule: Rule::Of("software_deployments:show"),
    tag: "software",
    summary: "Show a software deployment",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(show(call)),
};

pub(super) static UPDATE: Endpoint = Endpoint {
    name: "UpdateDeployment",
    method: Method::PUT,
    path: "/{tenant_id}/software_deployments/{deployment_id}",
    rule: Rule::Of("software_deployments:update"),
    tag: "software",
    summary: "Update a software deployment",
    query: &[],
    body: Some(&CHANGED),
    answer: Answer::Json(200),
    run: |call| Box::pin(update(call)),
};

pub(super) static DELETE: Endpoint = Endpoint {
    name: "DeleteDeployment",
    method: Method::DELETE,
    path: "/{tenant_id}/software_deployments/{deployment_id}",
    rule: Rule::Of("software_deployments:delete"),
    tag: "software",
    summary: "Delete a software deployment",
    query: &[],
    body: None,
    answer: Answer::Nothing,
    run: |call| Box::pin(delete(call)),
};

/// `GET …/software_deployments`.
async fn list(call: &Call) -> Result<Response, ApiError> {
    let server = call.query.get("server_id").map(str::to_owned);
    let deployments = call.service().deployments(&call.caller, server).await?;
    let shown: Value = deployments.iter().map(SoftwareDeployment::view).collect();
    Ok(reply::json(&value!({ "software_deployments": shown })))
}

/// `POST …/software_deployments`.
async fn create(call: &Call) -> Result<Response, ApiError> {
    let body = call.body()?;
    let new = NewDeployment {
        config: optional_text(body, "config_id").unwrap_or_default(),
        server: optional_text(body, "server_id")
            .ok_or_else(|| ApiError::new(Class::Invalid, "Data supplied was not valid: server_id must be specified"))?,
        inputs: body.get("input_values").cloned().unwrap_or_default(),
        action: optional_text(body, "action"),
        status: optional_text(body, "status"),
        reason: text::str(body.get("status_reason").unwrap_or(&Value::Null)),
        user_project: optional_text(body, "stack_user_project_id"),
    };
    let deployment = call.service().create_deployment(&call.caller, new).await?;
    Ok(reply::json(&value!({ "software_deployment": (deployment.view()) })))
}

/// `GET …/software_deployments/metadata/{server_id}`: the configs, as the agent in the server reads them.
async fn metadata(call: &Call) -> Result<Response, ApiError> {
    let configs = call.service().deployed_configs(&call.caller, call.params.get("server_id")).await?;
    let shown: Value = configs.iter().map(|config| Value::from(config.view())).collect();
    Ok(reply::json(&value!({ "metadata": shown })))
}

/// `GET …/software_deployments/{id}`.
async fn show(call: &Call) -> Result<Response, ApiError> {
    let deployment = call.service().current_deployment(&call.caller, call.params.get("deployment_id")).await?;
    Ok(reply::json(&value!({ "software_deployment": (deployment.view()) })))
}

/// `PUT …/software_deployments/{id}`.
async fn update(call: &Call) -> Result<Response, ApiError> {
    let body = call.body()?;
    let change = DeploymentChange {
        config: optional_text(body, "config_id"),
        inputs: body.get("input_values").cloned(),
        outputs: body.get("output_values").cloned(),
        action: optional_text(body, "action"),
        status: optional_text(body, "status"),
        reason: optional_text(body, "status_reason"),
    };
    let id = call.params.get("deployment_id");
    let deployment = call.service().change_deployment(&call.caller, id, change).await?;
    Ok(reply::json(&value!({ "software_deployment": (deployment.view()) })))
}

/// `DELETE …/software_deployments/{id}`.
async fn delete(call: &Call) -> Result<Response, ApiError> {
    call.service().delete_deployment(&call.caller, call.params.get("deployment_id")).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use crate::support::App;

    #[tokio::test]
    async fn a_deployment_needs_a_server() {
        let app = App::new().await;
        let path = "/v1/tenant1/software_deployments";
        assert_eq!(app.get(path).await.json(), json!({"software_deployments": []}));
        let refused = app.json(Method::POST, path, &json!({"config_id": "c"})).await;
        assert!(refused.status.as_u16() == 400 && refused.text.contains("server_id must be specified"), "{refused:?}");
        let metadata = app.get(&format!("{path}/metadata/{}", uuid::Uuid::nil())).await.json();
        assert_eq!(metadata, json!({"metadata": []}));
        assert_eq!(app.get(&format!("{path}/{}", uuid::Uuid::nil())).await.status.as_u16(), 404);
    }
}
