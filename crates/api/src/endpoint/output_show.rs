//! `GET …/outputs/{key}`: an output with its value.

use axum::response::Response;
use kiln_value::value;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::output::output;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:show_output")?;
    let view = call.service().view(call.stack().await?).await?;
    let key = call.params.get("output_key");
    let outputs = view.outputs(Some(key)).await;
    let found = outputs.first();
    let found = found.ok_or_else(|| ApiError::new("NotFound", format!("Specified output key {key} not found.")))?;
    Ok(reply::json(&value!({ "output": (output(found)) })))
}
