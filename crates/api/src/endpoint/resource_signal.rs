//! `POST …/resources/{name}/signal`.

use axum::response::Response;
use kiln_service::Signal;
use kiln_value::Value;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("resource:signal")?;
    let resource = call.params.get("resource_name").to_owned();
    let signal = Signal { resource, details: call.body.clone().unwrap_or_default() };
    call.service().signal(call.stack().await?, &signal).await?;
    Ok(reply::json(&Value::Null))
}
