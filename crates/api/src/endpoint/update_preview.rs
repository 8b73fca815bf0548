//! `PUT` and `PATCH …/preview`: the effect of an update, according to the plan that the update itself would follow.

use axum::response::Response;
use kiln_service::Door;
use kiln_value::Value;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::Formats;
use crate::http::reply;
use crate::view::planned::Plan;

pub(crate) async fn put(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:preview_update")?;
    run(call, false).await
}

pub(crate) async fn patch(call: &Call) -> Result<Response, ApiError> {
    call.allow("stacks:preview_update_patch")?;
    run(call, true).await
}

/// Heat's lists, and in addition the outputs that change and the version of the stack, which an update can name
/// (`if_version`).
async fn run(call: &Call, patch: bool) -> Result<Response, ApiError> {
    let body = call.instantiation().await?;
    let nested = call.query.boolean("show_nested")?.unwrap_or(false);
    let update = body.update(patch)?;
    let stack = call.stack().await?;
    let previewed = call.service().preview_update(&call.caller, stack, update).await;
    let previewed = previewed.map_err(|error| body.placed(error))?;
    let plan = previewed.shown(Door::UpdatePreview, |update| {
        let mut plan = Plan::of(&update.preview, nested).into_map();
        plan.insert("version".to_owned(), update.version.as_str().into());
        Value::Map(plan)
    });
    let response = reply::json(&plan);
    // The client need not wait until a large plan is freed.
    tokio::task::spawn_blocking(move || drop((previewed, plan)));
    Ok(response)
}
