//! Events as they happen, so that clients need not poll: server-sent events (`Accept: text/event-stream`), and lists that
//! wait (`wait`). Heat has neither, and ignores both: the response tells clients.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::{StreamExt as _, future, stream};
use http::Method;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use kiln_service::{NewEvent, Watch, Watched};
use kiln_store::{Doorbell, EventId, EventQuery, Stack, StackId};
use kiln_value::Class;
use serde::Serialize;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use super::{Answer, Endpoint, Rule};
use crate::call::Call;
use crate::error::ApiError;
use crate::http::query::Formats;
use crate::http::reply;
use crate::http::watchers::{Full, Watcher};
use crate::link::Links;
use crate::view::event::EventView;

pub(super) static ENDPOINT: Endpoint = Endpoint {
    name: "WatchProject",
    method: Method::GET,
    path: "/{tenant_id}/events",
    rule: Rule::Of("events:index"),
    tag: "events",
    summary: "List or watch the events of a project",
    query: super::event_list::EVENTS,
    body: None,
    answer: Answer::Events,
    run: |call| Box::pin(of_project(call)),
};

/// The longest wait of a request.
const LONGEST: u64 = 60;
/// Interval of comments in a stream without events, so that proxies keep the connection and lost clients are noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Pause between two reads, so that the events of a busy stack are read together.
const PAUSE: Duration = Duration::from_millis(100);
/// The end of a stream. Clients connect again, with a token that is still valid.
const LIFETIME: Duration = Duration::from_mins(15);
/// The length of a list without a limit.
const LISTED: u64 = 100;

#[derive(Serialize)]
struct Events<'a> {
    events: Vec<EventView<'a>>,
}

/// `GET /{tenant_id}/events`: the events of a project after a marker, or the newest ones.
async fn of_project(call: &Call) -> Result<Response, ApiError> {
    let project = call.project().to_owned();
    let asked = &call.query;
    let (limit, patience) = (asked.limit(LISTED)?, patience(call).await?);
    let filter = EventQuery {
        actions: asked.all("resource_action"),
        statuses: asked.all("resource_status"),
        types: asked.all("resource_type"),
        ..EventQuery::default()
    };
    if wants_stream(call) {
        return stream(call, Watched::Project(project), filter, asked.all("resource_name")).await;
    }
    let marker = marker(asked.get("marker"))?;
    let query =
        EventQuery { project: Some(project), descending: marker.is_none(), marker, limit: Some(limit), ..filter };
    let mut news = News::of(call, patience.as_ref().filter(|_| marker.is_some()), None);
    let mut events = loop {
        let events = call.store().events(&query).await?;
        if !events.is_empty() || !news.come().await {
            break events;
        }
    };
    if query.descending {
        events.reverse();
    }
    let mut views = Vec::new();
    let mut stacks: Vec<Stack> = Vec::new();
    for event in &events {
        if !stacks.iter().any(|stack| stack.id == event.stack) {
            stacks.extend(call.store().stack(event.stack).await?);
        }
    }
    for event in &events {
        let stack = stacks.iter().find(|stack| stack.id == event.stack);
        views.extend(stack.map(|stack| EventView::summary(event, stack, None, &call.links).of_operation(event)));
    }
    Ok(waited(reply::json(&Events { events: views }), patience.as_ref()))
}

/// How long a request waits for its first event.
pub(super) struct Patience {
    limit: Duration,
    _place: Watcher,
}

/// How long a request waits for its first event; `None`: not at all, also if too many do. Its client polls then.
pub(super) async fn patience(call: &Call) -> Result<Option<Patience>, ApiError> {
    let seconds = call.query.integer("wait")?.map(|seconds| u64::try_from(seconds).unwrap_or(0).min(LONGEST));
    let Some(limit) = seconds.filter(|_| !wants_stream(call)).map(Duration::from_secs) else { return Ok(None) };
    let place = admit(call).await?.ok();
    Ok(place.map(|place| Patience { limit, _place: place }))
}

/// A place for a request that waits.
async fn admit(call: &Call) -> Result<Result<Watcher, Full>, ApiError> {
    let project = &call.caller.project_id;
    Ok(call.watchers.admit(project, call.service().most_event_streams(project).await?))
}

/// Adds to a response that the wait was respected (RFC 7240).
pub(super) fn waited(mut response: Response, patience: Option<&Patience>) -> Response {
    let value = patience.and_then(|patience| HeaderValue::from_str(&format!("wait={}", patience.limit.as_secs())).ok());
    if let Some(value) = value {
        response.headers_mut().insert("preference-applied", value);
    }
    response
}

/// Waits for new events, until the time of a request is over or the service stops.
pub(super) struct News {
    wait: Option<(Arc<dyn Doorbell>, Instant)>,
    root: Option<StackId>,
    stopping: Receiver<bool>,
}

impl News {
    /// Created before the first read, so that no event is missed. `root`: only events of this tree.
    pub(super) fn of(call: &Call, patience: Option<&Patience>, root: Option<StackId>) -> Self {
        let wait = patience.map(|patience| (call.store().news(), Instant::now() + patience.limit));
        Self { wait, root, stopping: call.stopping.clone() }
    }

    /// Whether there may be new events; false when it is time to respond.
    pub(super) async fn come(&mut self) -> bool {
        let Some((bell, until)) = &self.wait else { return false };
        let rung = async {
            loop {
                let rung = bell.wait().await;
                if rung.is_empty() || self.root.is_none_or(|root| rung.contains(&root)) {
                    return;
                }
            }
        };
        tokio::select! {
            () = rung => true,
            () = tokio::time::sleep_until(*until) => false,
            () = stopped(&mut self.stopping) => false,
        }
    }
}

async fn stopped(stopping: &mut Receiver<bool>) {
    // A dropped sender also means stop.
    drop(stopping.wait_for(|stop| *stop).await);
}

/// Whether the client asked for server-sent events.
pub(super) fn wants_stream(call: &Call) -> bool {
    let accept = call.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.split(',').any(|kind| kind.split(';').next().unwrap_or_default().trim() == "text/event-stream")
}

/// The response to a stream that must not be opened.
fn too_many(full: Full) -> Response {
    let (class, who, limit) = match full {
        Full::Service => (Class::HTTPServiceUnavailable, "", "[kiln] max_event_streams"),
        Full::Project => (
            Class::HTTPTooManyRequests,
            " of this project",
            "[kiln] max_event_streams_per_project, or the quota event_streams,",
        ),
    };
    tracing::warn!("refused a stream of events: {limit} is reached");
    let text = format!("Too many requests{who} wait for events: list events without waiting, or try again later.");
    let mut response = ApiError::new(class, text).into_response();
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("10"));
    response
}

/// The ID of an event in a request.
fn marker(id: Option<&str>) -> Result<Option<EventId>, ApiError> {
    let parsed = id.map(|id| id.parse().map_err(|_| ApiError::bad_request(format!("{id} is not the ID of an event"))));
    parsed.transpose()
}

/// A stream of events after `Last-Event-ID` or `marker`.
pub(super) async fn stream(
    call: &Call,
    what: Watched,
    filter: EventQuery,
    names: Vec<String>,
) -> Result<Response, ApiError> {
    let place = match admit(call).await? {
        Ok(place) => place,
        Err(full) => return Ok(too_many(full)),
    };
    let last = call.headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = marker(last.or_else(|| call.query.get("marker")))?;
    let root = match &what {
        Watched::Tree(stack, depth) if *depth > 0 => Some(Stack::clone(stack)),
        _ => None,
    };
    let watch = call.service().watch(what, after, EventQuery { marker: None, limit: None, ..filter }).await?;
    let sent = Sent {
        watch,
        links: call.links.clone(),
        root,
        names,
        until: Instant::now() + LIFETIME,
        stopping: call.stopping.clone(),
        _place: place,
    };
    // Proxies that send the head with the first part would keep a client waiting until the first event.
    let begun = stream::once(future::ready(Ok(Bytes::from_static(b":\n\n"))));
    let mut response = Response::new(Body::from_stream(begun.chain(stream::unfold(Some(sent), Sent::next))));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // nginx would collect events before it sends them.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// The state of a stream. The next part is read when the client has taken the one before.
struct Sent {
    watch: Watch,
    links: Links,
    root: Option<Stack>,
    names: Vec<String>,
    until: Instant,
    stopping: Receiver<bool>,
    _place: Watcher,
}

impl Sent {
    async fn next(state: Option<Self>) -> Option<(Result<Bytes, Infallible>, Option<Self>)> {
        let mut this = state?;
        let alive = Instant::now() + KEEP_ALIVE;
        let events = tokio::select! {
            events = this.watch.next() => events,
            () = tokio::time::sleep_until(alive.min(this.until)) => {
                let is_over = Instant::now() >= this.until;
                return (!is_over).then_some((Ok(Bytes::from_static(b":\n\n")), Some(this)));
            }
            () = stopped(&mut this.stopping) => return None,
        };
        match events {
            Ok(events) => {
                let text = this.text(&events);
                // A client that is behind catches up without pauses.
                if !this.watch.may_have_more() {
                    tokio::time::sleep(PAUSE).await;
                }
                Some((Ok(text.into()), Some(this)))
            }
            Err(error) => {
                tracing::warn!(%error, "a stream of events ended");
                None
            }
        }
    }

    fn text(&self, events: &[NewEvent]) -> String {
        let mut text = String::new();
        for new in events {
            if !self.names.is_empty() && !self.names.contains(&new.event.resource_name) {
                continue;
            }
            let view = EventView::summary(&new.event, &new.stack, self.root.as_ref(), &self.links);
            let view = view.of_operation(&new.event);
            // JSON of serde_json has no line breaks.
            let data = serde_json::to_string(&view).unwrap_or_default();
            _ = write!(text, "id: {}\ndata: {data}\n\n", new.event.id);
        }
        if text.is_empty() { ":\n\n".to_owned() } else { text }
    }
}

#[cfg(test)]
mod tests {
    use crate::support::{App, random_string};

    #[tokio::test]
    async fn the_events_of_a_project_are_those_of_its_stacks() {
        let app = App::new().await;
        app.create("one", random_string()).await;
        app.create("two", random_string()).await;
        let events = app.get("/v1/tenant1/events").await.json();
        let mut names: Vec<_> =
            events["events"].as_array().unwrap().iter().map(|event| event["resource_name"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(app.get("/v1/tenant1/events?wait=soon").await.status.as_u16(), 400);
    }
}
