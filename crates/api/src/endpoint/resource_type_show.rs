//! `GET /resource_types/{name}`: the schema of a type.

use axum::response::Response;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:resource_schema")?;
    let name = call.params.get("type_name");
    let found = call.service().available_resource_type(&call.caller, name).await?;
    Ok(reply::json(&found.schema_view(false)))
}
