//! `GET …/events` and `GET …/resources/{name}/events`: a list, or with `wait` a list that waits for its first event.

use axum::response::Response;
use kiln_service::Watched;
use kiln_store::{EventId, EventQuery};
use serde::Serialize;

use crate::call::Call;
use crate::endpoint::event_watch;
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
    let depth = u32::try_from(asked.integer("nested_depth")?.unwrap_or(0)).unwrap_or(u32::MAX);
    let patience = event_watch::patience(call)?;
    let stack = call.stack_or_deleted().await?;
    let marker = asked.get("marker").and_then(|marker| marker.parse::<EventId>().ok());
    let names = asked.all("resource_name");
    let query = EventQuery {
        resource: resource.map(str::to_owned).or_else(|| names.first().filter(|_| names.len() == 1).cloned()),
        actions: asked.all("resource_action"),
        statuses: asked.all("resource_status"),
        types: asked.all("resource_type"),
        descending: asked.get("sort_dir") != Some("asc"),
        marker,
        limit: limit.and_then(|limit| u64::try_from(limit).ok()),
        ..EventQuery::default()
    };
    if event_watch::wants_stream(call) {
        return event_watch::stream(call, Watched::Tree(Box::new(stack), depth), query, names).await;
    }
    let mut news = event_watch::News::of(call, patience, Some(stack.root));
    let (stacks, events) = loop {
        let stacks = call.service().tree(stack.clone(), depth).await?;
        let query = EventQuery { stacks: stacks.iter().map(|stack| stack.id).collect(), ..query.clone() };
        let mut events = call.store().events(&query).await?;
        if resource.is_none() && names.len() > 1 {
            events.retain(|event| names.contains(&event.resource_name));
        }
        if !events.is_empty() || !news.come().await {
            break (stacks, events);
        }
    };
    if let Some(resource) = resource.filter(|_| events.is_empty()) {
        return Err(ApiError::not_found(format!("No events found for resource {resource}")));
    }
    let root = (depth > 0).then_some(&stack);
    let views = events.iter().map(|event| {
        let of = stacks.iter().find(|stack| stack.id == event.stack).unwrap_or(&stack);
        EventView::summary(event, of, root, &call.links)
    });
    Ok(event_watch::waited(reply::json(&Events { events: views.collect() }), patience))
}
