//! `GET …/resources/{name}/events/{id}`.

use axum::response::Response;
use http::Method;
use kiln_service::Door;
use kiln_store::EventId;
use serde::Serialize;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::reply;
use crate::view::event::EventView;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "ShowEvent",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}/events/{event_id}",
    rule: Rule::Of("events:show"),
    tag: "events",
    summary: "Show an event",
    query: &[],
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run(call)),
};

#[derive(Serialize)]
struct One<'a> {
    event: EventView<'a>,
}

async fn run(call: &Call) -> Result<Response, ApiError> {
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
