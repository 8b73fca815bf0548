//! `GET …/outputs`: names and descriptions.

use axum::response::Response;
use kiln_value::{Value, value};

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:list_outputs")?;
    let view = call.service().view(call.stack().await?).await?;
    let outputs = view.blueprint.outputs().values();
    let outputs: Value =
        outputs.map(|output| value!({ "output_key": (&output.name), "description": (&output.description) })).collect();
    Ok(reply::json(&value!({ "outputs": outputs })))
}
