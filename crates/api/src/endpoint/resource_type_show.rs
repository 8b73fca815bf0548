//! `GET /resource_types/{name}`: the schema of a type.

use std::sync::Arc;

use axum::response::Response;
use kiln_resource::Entry;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::judge;

pub(crate) fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:resource_schema")?;
    let entry = find(call)?;
    let resource_type = &entry.resource_type;
    if !call.caller.reaches(&resource_type.service) {
        return Err(judge::unavailable(&resource_type.service, &resource_type.name));
    }
    Ok(reply::json(&resource_type.schema_view(false)))
}

/// The type that the path names, if the caller may use it.
pub(super) fn find(call: &Call) -> Result<Arc<Entry>, ApiError> {
    let name = call.params.get("type_name");
    if !call.api.policy.allows_type(name, &call.caller) {
        return Err(ApiError::forbidden(name));
    }
    let entry = call.api.world.catalog.types.get(name);
    let entry = entry
        .ok_or_else(|| ApiError::new("EntityNotFound", format!("The Resource Type ({name}) could not be found.")))?;
    if entry.resource_type.support.is_hidden() {
        return Err(ApiError::not_supported(name));
    }
    Ok(Arc::clone(entry))
}
