//! `GET …/resources/{name}/events/{id}`.

use axum::response::Response;
use kiln_service::Door;
use kiln_store::EventId;
use serde::Serialize;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::event::EventView;

#[derive(Serialize)]
struct One<'a> {
    event: EventView<'a>,
}

pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    call.allow("events:show")?;
    let stack = call.stack_or_deleted().await?;
    let (id, resource) = (call.params.get("event_id"), call.params.get("resource_name"));
    let event = match id.parse::<EventId>() {
        Ok(id) => call.store().event(stack.id, id).await?,
        Err(_) => None,
    };
    let event = event.filter(|event| event.resource_name == resource);
    let mut event = event.ok_or_else(|| ApiError::not_found(format!("No event {id} found")))?;
    call.service().hidden_values(&stack).await?.mask(Door::EventProperties, &mut event.properties);
    Ok(reply::json(&One { event: EventView::whole(&event, &stack, &call.links) }))
}
