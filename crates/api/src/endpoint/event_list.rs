//! `GET …/events` and `GET …/resources/{name}/events`: a list, or with `wait` a list that waits for its first event.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::response::Response;
use http::Method;
use kiln_service::Watched;
use kiln_stack::Backends;
use kiln_store::{Event, EventId, EventQuery, Stack, StackId, StackQuery};

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::endpoint::event_watch;
use crate::error::ApiError;
use crate::http::kept_list::KeptList;
use crate::http::query::Formats;
use crate::http::stream::{Part, Parts};
use crate::link::Links;
use crate::view::event::EventView;

/// The query parameters.
pub(super) const EVENTS: &[(&str, &str)] = &[
    ("resource_status", "list"),
    ("resource_action", "list"),
    ("resource_name", "list"),
    ("resource_type", "list"),
    ("limit", "integer"),
    ("marker", "text"),
    ("nested_depth", "integer"),
    ("sort_dir", "text"),
    ("sort_keys", "list"),
    ("wait", "seconds"),
];

pub(super) static OF_STACK: Endpoint = Endpoint {
    name: "ListEvents",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/events",
    rule: Rule::Of("events:index"),
    tag: "events",
    summary: "List or watch the events of a stack",
    query: EVENTS,
    body: None,
    answer: Answer::Events,
    run: |call| Box::pin(run(call)),
};

pub(super) static OF_RESOURCE: Endpoint = Endpoint {
    name: "ListResourceEvents",
    method: Method::GET,
    path: "/{tenant_id}/stacks/{stack_name}/{stack_id}/resources/{resource_name}/events",
    rule: Rule::Of("events:index"),
    tag: "events",
    summary: "List the events of a resource",
    query: EVENTS,
    body: None,
    answer: Answer::Json(200),
    run: |call| Box::pin(run_of_resource(call)),
};

/// Events in a part of the response.
const PAGE: u64 = 500;
/// Stacks that are kept to describe their events.
const KEPT: usize = 1_000;

/// The events of a stack.
async fn run(call: &Call) -> Result<Response, ApiError> {
    list(call, None).await
}

/// The events of a resource, at least one.
async fn run_of_resource(call: &Call) -> Result<Response, ApiError> {
    list(call, Some(call.params.get("resource_name"))).await
}

async fn list(call: &Call, resource: Option<&str>) -> Result<Response, ApiError> {
    let asked = &call.query;
    let limit = asked.integer("limit")?;
    let depth = u32::try_from(asked.integer("nested_depth")?.unwrap_or(0)).unwrap_or(u32::MAX);
    let patience = event_watch::patience(call).await?;
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
    let kept = KeptList::new(call, &stack, depth == 0 && patience.is_none());
    if let Some(response) = kept.get() {
        return Ok(response);
    }
    let mut news = event_watch::News::of(call, patience.as_ref(), Some(stack.root));
    let root = (depth > 0).then(|| stack.clone());
    let mut pages = loop {
        // A nested stack may be new.
        let stacks = stacks_of(call, &stack, depth).await?;
        let query = EventQuery { stacks, root: whole_tree(call, &stack, depth).then_some(stack.id), ..query.clone() };
        let mut pages =
            Pages::new(call, query, root.clone(), if resource.is_none() { names.clone() } else { Vec::new() });
        pages.read().await?;
        if !pages.read.is_empty() || !news.come().await {
            break pages;
        }
    };
    if let Some(resource) = resource.filter(|_| pages.read.is_empty()) {
        return Err(ApiError::not_found(format!("No events found for resource {resource}")));
    }
    pages.stacks.insert(stack.id, Arc::new(stack));
    Ok(event_watch::waited(kept.read("events", pages).await?, patience.as_ref()))
}

/// Whether the events of all nested stacks are asked for: then the store finds them by their root.
fn whole_tree(call: &Call, stack: &Stack, depth: u32) -> bool {
    stack.parent.is_none() && depth > 0 && depth >= call.service().options.limits.nested_depth
}

/// The stacks whose events are asked for; empty for a whole tree.
async fn stacks_of(call: &Call, stack: &Stack, depth: u32) -> Result<Vec<StackId>, ApiError> {
    if depth == 0 {
        return Ok(vec![stack.id]);
    }
    if whole_tree(call, stack, depth) {
        return Ok(Vec::new());
    }
    Ok(call.service().tree(stack.clone(), depth).await?.into_iter().map(|stack| stack.id).collect())
}

/// A list of events, which is read page by page.
struct Pages {
    backends: Backends,
    links: Links,
    /// The next page.
    query: EventQuery,
    /// Events that may still be listed; `None`: no limit.
    left: Option<u64>,
    /// The stack of a list with nested stacks.
    root: Option<Stack>,
    /// Only events of these resources; empty: of all.
    names: Vec<String>,
    /// The page that is not sent yet.
    read: Vec<Event>,
    is_last: bool,
    /// The stacks of events.
    stacks: HashMap<StackId, Arc<Stack>>,
}

impl Pages {
    fn new(call: &Call, query: EventQuery, root: Option<Stack>, names: Vec<String>) -> Self {
        let (backends, links) = (call.backends().clone(), call.links.clone());
        let left = query.limit;
        let names = if names.len() > 1 { names } else { Vec::new() };
        let (read, stacks) = (Vec::new(), HashMap::new());
        Self { backends, links, query, left, root, names, read, is_last: false, stacks }
    }

    /// Reads the next page.
    async fn read(&mut self) -> Result<(), ApiError> {
        let size = self.left.map_or(PAGE, |left| left.min(PAGE));
        self.query.limit = Some(size);
        let mut events = self.backends.store.events(&self.query).await?;
        let count = u64::try_from(events.len()).unwrap_or(u64::MAX);
        self.left = self.left.map(|left| left.saturating_sub(count));
        self.is_last = count < size || self.left == Some(0);
        self.query.marker = events.last().map(|event| event.id);
        if !self.names.is_empty() {
            events.retain(|event| self.names.contains(&event.resource_name));
        }
        self.read = events;
        Ok(())
    }

    /// Loads the stacks of the page.
    async fn know_stacks(&mut self) -> Result<(), ApiError> {
        if self.stacks.len() > KEPT {
            self.stacks.clear();
        }
        let ids: BTreeSet<StackId> = self.read.iter().map(|event| event.stack).collect();
        let ids: Vec<StackId> = ids.into_iter().filter(|id| !self.stacks.contains_key(id)).collect();
        if !ids.is_empty() {
            let query = StackQuery { ids, nested: true, deleted: true, ..StackQuery::default() };
            let stacks = self.backends.store.stacks(&query).await?;
            self.stacks.extend(stacks.into_iter().map(|stack| (stack.id, Arc::new(stack))));
        }
        Ok(())
    }
}

impl Parts for Pages {
    async fn next(&mut self) -> Result<Option<Part>, ApiError> {
        if self.read.is_empty() {
            if self.is_last {
                return Ok(None);
            }
            self.read().await?;
        }
        self.know_stacks().await?;
        let mut part = Part::default();
        for event in std::mem::take(&mut self.read) {
            let Some(stack) = self.stacks.get(&event.stack) else { continue };
            part.push(&EventView::summary(&event, stack, self.root.as_ref(), &self.links));
        }
        Ok(Some(part))
    }
}

#[cfg(test)]
mod tests {
    use crate::support::{App, random_string};

    #[tokio::test]
    async fn the_events_of_a_stack_are_listed_and_a_resource_needs_one() {
        let app = App::new().await;
        let path = app.create("s", random_string()).await;
        app.settle("s").await;
        let events = app.get(&format!("{path}/events")).await.json();
        let shown: Vec<_> =
            events["events"].as_array().unwrap().iter().map(|event| &event["resource_status"]).collect();
        assert_eq!(shown, ["CREATE_IN_PROGRESS"]);
        let filtered = app.get(&format!("{path}/events?resource_status=COMPLETE")).await.json();
        assert_eq!(filtered, serde_json::json!({"events": []}));
        let missing = app.get(&format!("{path}/resources/one/events")).await;
        assert_eq!(missing.status.as_u16(), 404);
        assert!(missing.text.contains("No events found for resource one"), "{}", missing.text);
    }
}
