//! `GET …/resources/{name}/metadata`.

use axum::response::Response;
use kiln_value::value;

use super::resource_show::{missing, resources};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("resource:metadata")?;
    let resources = resources(call).await?;
    let row = resources.row(call.params.get("resource_name")).ok_or_else(|| missing(call))?;
    let metadata = call.service().metadata_of(&resources.view.stack, row).await?;
    Ok(reply::json(&value!({ "metadata": metadata })))
}
