//! `POST …/snapshots`: the body may have a name.

use axum::response::Response;
use kiln_value::text;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::snapshot::snapshot_view;

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:snapshot")?;
    let name = call.body.as_ref().and_then(|body| body.get("name")).filter(|name| !name.is_null()).map(text::str);
    let stack = call.stack().await?;
    let snapshot = call.service().create_snapshot(&stack, name, &call.caller).await?;
    Ok(reply::json(&snapshot_view(&snapshot)))
}
