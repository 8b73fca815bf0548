//! `GET /resource_types/{name}`: the schema of a type.

use axum::response::Response;
use kiln_resource::ResourceType;

use crate::availability::Availability;
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:resource_schema")?;
    let resource_type = find(call)?;
    if let Some(error) = Availability::of(call, [resource_type]).await.refusal(resource_type, &resource_type.name) {
        return Err(error.into());
    }
    Ok(reply::json(&resource_type.schema_view(false)))
}

/// The type that the path names, if the caller may use it.
pub(super) fn find(call: &Call) -> Result<&ResourceType, ApiError> {
    let name = call.params.get("type_name");
    if !call.api.policy.allows_type(name, &call.caller) {
        return Err(ApiError::forbidden(name));
    }
    let found = call.api.backends.resource_types.shown_as(name);
    let found = found
        .ok_or_else(|| ApiError::new("EntityNotFound", format!("The Resource Type ({name}) could not be found.")))?;
    if found.support.is_hidden() {
        return Err(ApiError::not_supported(name));
    }
    Ok(found)
}
