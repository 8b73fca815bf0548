//! `GET /topology_types`: the types of blueprints and TOSCA that the operator has added, for clients that convert documents.

use axum::response::Response;
use kiln_value::{Value, value};

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:list_resource_types")?;
    let types = &call.api.options.topology_types;
    let types: Value = types.texts().map(|(name, text)| value!({"name": name, "text": text})).collect();
    Ok(reply::json(&value!({ "topology_types": types })))
}
