//! `…/software_deployments`.

use axum::response::Response;
use http::StatusCode;
use kiln_resource::SoftwareDeployment;
use kiln_service::{DeploymentChange, NewDeployment};
use kiln_value::{Value, text, value};

use super::software_config::optional_text;
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::instant::instant;

/// `GET …/software_deployments`.
pub(crate) async fn list(call: &Call) -> Result<Response, ApiError> {
    call.allow("software_deployments:index")?;
    let server = call.query.get("server_id").map(str::to_owned);
    let deployments = call.service().deployments(&call.caller, server).await?;
    let shown: Value = deployments.iter().map(view).collect();
    Ok(reply::json(&value!({ "software_deployments": shown })))
}

/// `POST …/software_deployments`.
pub(crate) async fn create(call: &Call) -> Result<Response, ApiError> {
    call.allow("software_deployments:create")?;
    let body = call.body()?;
    let new = NewDeployment {
        config: optional_text(body, "config_id").unwrap_or_default(),
        server: optional_text(body, "server_id")
            .ok_or_else(|| ApiError::new("Invalid", "Data supplied was not valid: server_id must be specified"))?,
        inputs: body.get("input_values").cloned().unwrap_or_default(),
        action: optional_text(body, "action"),
        status: optional_text(body, "status"),
        reason: text::str(body.get("status_reason").unwrap_or(&Value::Null)),
        user_project: optional_text(body, "stack_user_project_id"),
    };
    let deployment = call.service().create_deployment(&call.caller, new).await?;
    Ok(reply::json(&value!({ "software_deployment": (view(&deployment)) })))
}

/// `GET …/software_deployments/metadata/{server_id}`: the configs, as the agent in the server reads them.
pub(crate) async fn metadata(call: &Call) -> Result<Response, ApiError> {
    call.allow("software_deployments:metadata")?;
    let configs = call.service().deployed_configs(&call.caller, call.params.get("server_id")).await?;
    let shown: Value = configs.iter().map(|config| Value::from(config.view())).collect();
    Ok(reply::json(&value!({ "metadata": shown })))
}

/// `GET …/software_deployments/{id}`.
pub(crate) async fn show(call: &Call) -> Result<Response, ApiError> {
    call.allow("software_deployments:show")?;
    let deployment = call.service().current_deployment(&call.caller, call.params.get("deployment_id")).await?;
    Ok(reply::json(&value!({ "software_deployment": (view(&deployment)) })))
}

/// `PUT …/software_deployments/{id}`.
pub(crate) async fn update(call: &Call) -> Result<Response, ApiError> {
    call.allow("software_deployments:update")?;
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
    Ok(reply::json(&value!({ "software_deployment": (view(&deployment)) })))
}

/// `DELETE …/software_deployments/{id}`.
pub(crate) async fn delete(call: &Call) -> Result<Response, ApiError> {
    call.allow("software_deployments:delete")?;
    call.service().delete_deployment(&call.caller, call.params.get("deployment_id")).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

fn view(deployment: &SoftwareDeployment) -> Value {
    let body = &deployment.body;
    let mut shown = value!({
        "id": (&deployment.id),
        "server_id": (&deployment.server),
        "input_values": (body.inputs.clone()),
        "output_values": (body.outputs.clone()),
        "action": (body.action.clone()),
        "status": (body.status.clone()),
        "status_reason": (&body.reason),
        "config_id": (&deployment.config),
        "creation_time": (instant(deployment.created)),
    });
    if let (Some(updated), Some(entries)) = (deployment.updated, shown.as_map_mut()) {
        entries.insert("updated_time".to_owned(), instant(updated).into());
    }
    shown
}
