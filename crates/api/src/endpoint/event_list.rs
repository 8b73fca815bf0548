//! `GET …/events` and `GET …/resources/{name}/events`.

use axum::response::Response;
use kiln_store::{EventId, EventQuery, Stack, StackQuery};
use serde::Serialize;

use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::Formats;
use crate::http::reply;
use crate::view::event::EventView;

#[derive(Serialize)]
struct Events<'a> {
    events: Vec<EventView<'a>>,
}

/// The events of a stack.
pub(crate) async fn run(call: &Call) -> Result<Response, ApiError> {
    list(call, None).await
}

/// The events of a resource, at least one.
pub(crate) async fn run_of_resource(call: &Call) -> Result<Response, ApiError> {
    list(call, Some(call.params.get("resource_name"))).await
}

async fn list(call: &Call, resource: Option<&str>) -> Result<Response, ApiError> {
    call.allow("events:index")?;
    let asked = &call.query;
    let limit = asked.integer("limit")?;
    let depth = asked.integer("nested_depth")?.unwrap_or(0);
    let stack = call.stack_or_deleted().await?;
    let stacks = if depth > 0 { tree(call, stack.clone(), depth).await? } else { vec![stack.clone()] };
    let marker = asked.get("marker").and_then(|marker| marker.parse::<EventId>().ok());
    let names = asked.all("resource_name");
    let query = EventQuery {
        stacks: stacks.iter().map(|stack| stack.id).collect(),
        resource: resource.map(str::to_owned).or_else(|| names.first().filter(|_| names.len() == 1).cloned()),
        actions: asked.all("resource_action"),
        statuses: asked.all("resource_status"),
        types: asked.all("resource_type"),
        descending: asked.get("sort_dir") != Some("asc"),
        marker,
        limit: limit.and_then(|limit| u64::try_from(limit).ok()),
        ..EventQuery::default()
    };
    let mut events = call.store().events(&query).await?;
    if resource.is_none() && names.len() > 1 {
        events.retain(|event| names.contains(&event.resource_name));
    }
    if let Some(resource) = resource.filter(|_| events.is_empty()) {
        return Err(ApiError::not_found(format!("No events found for resource {resource}")));
    }
    let root = (depth > 0).then_some(&stack);
    let views = events.iter().map(|event| {
        let of = stacks.iter().find(|stack| stack.id == event.stack).unwrap_or(&stack);
        EventView::summary(event, of, root, &call.links)
    });
    Ok(reply::json(&Events { events: views.collect() }))
}

/// A stack and its nested stacks, down to a depth.
pub(super) async fn tree(call: &Call, root: Stack, depth: i64) -> Result<Vec<Stack>, ApiError> {
    let mut stacks = vec![root];
    let mut level = 0..1;
    for _ in 0..depth.min(i64::from(call.service().options.limits.nested_depth)) {
        let start = stacks.len();
        for at in level {
            let Some(parent) = stacks.get(at).map(|stack| stack.id) else { continue };
            let query = StackQuery { parent: Some(parent), nested: true, deleted: true, ..StackQuery::default() };
            stacks.extend(call.store().stacks(&query).await?);
        }
        level = start..stacks.len();
    }
    Ok(stacks)
}
