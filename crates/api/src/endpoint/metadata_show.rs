//! `GET …/resources/{name}/metadata`.

use axum::response::Response;
use kiln_value::{Map, Value, value};

use super::resource_show::{missing, resources};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("resource:metadata")?;
    let resources = resources(call).await?;
    let row = resources.row(call.params.get("resource_name")).ok_or_else(|| missing(call))?;
    let metadata = match &row.metadata {
        Value::Null => Value::Map(Map::new()),
        metadata => metadata.clone(),
    };
    Ok(reply::json(&value!({ "metadata": metadata })))
}
