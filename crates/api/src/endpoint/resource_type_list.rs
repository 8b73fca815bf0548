//! `GET /resource_types`.

use axum::response::Response;
use kiln_resource::ResourceType;
use kiln_service::ResourceTypeFilter;
use kiln_value::{Value, value};

use crate::call::Call;
use crate::error::ApiError;
use crate::http::{query, reply};

/// The valid values of `support_status`.
const STATUSES: [&str; 5] = ["UNKNOWN", "SUPPORTED", "DEPRECATED", "UNSUPPORTED", "HIDDEN"];

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:list_resource_types")?;
    let with_description = match call.query.given("with_description") {
        Some(text) => query::boolean("with_description", &text.into())?,
        None => false,
    };
    let status = call.query.given("support_status");
    if status.is_some_and(|status| !STATUSES.contains(&status)) {
        let words = STATUSES.map(|word| format!("'{word}'")).join(", ");
        let reason = format!("Invalid support status and should be one of ({words})");
        return Err(ApiError::new("Invalid", format!("Data supplied was not valid: {reason}")));
    }
    let filter = ResourceTypeFilter { name: call.query.given("name"), status, version: call.query.given("version") };
    let types = call.service().resource_types(&call.caller, filter).await;
    let types: Value = types.into_iter().map(|resource_type| entry(resource_type, with_description)).collect();
    Ok(reply::json(&value!({ "resource_types": types })))
}

fn entry(resource_type: &ResourceType, with_description: bool) -> Value {
    let name = Value::from(&resource_type.name);
    if with_description {
        return value!({ "resource_type": name, "description": (&resource_type.summary) });
    }
    name
}
