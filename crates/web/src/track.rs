//! The access log and the ID of a request.

use std::net::IpAddr;
use std::time::Duration;

use axum::response::Response;
use http::HeaderValue;
use http::request::Parts;
use kiln_identity::Caller;
use kiln_stack::Backends;
use tracing::Span;
use tracing::field::Empty;

use crate::heat::Passed;
use crate::server::connection_slots::note_project;

/// Methods that metrics distinguish.
const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Adds the caller to the span of the request, and the project to the connection.
pub fn known(caller: &Caller) {
    let span = Span::current();
    span.record("user", caller.user_id.as_str());
    span.record("project", caller.project_id.as_str());
    note_project(&caller.project_id);
}

/// Why a request is refused: an extension of the response, for the log.
#[derive(Clone, Debug)]
pub struct Reason(pub String);

/// A request that may have waited for events: an extension of the response, for metrics.
#[derive(Clone, Copy, Debug)]
pub struct Waited;

/// The header with the ID of a request.
const REQUEST_ID: &str = "x-openstack-request-id";

/// The longest reason in the log, in bytes.
const LONGEST: usize = 500;

/// A request from its start to its response.
#[derive(Clone, Debug)]
pub struct Track {
    /// The ID of the request: `req-5f…`.
    pub id: String,
    span: Span,
    begun: Duration,
    action: Option<&'static str>,
    /// The API and its route, for metrics: paths of clients would be too many.
    place: (&'static str, Option<&'static str>),
}

impl Track {
    /// The start of a request from an address.
    pub fn begin(backends: &Backends, head: &Parts, client: Option<IpAddr>) -> Self {
        let id = format!("req-{}", backends.chance.uuid());
        let traceparent = head.headers.get("traceparent").and_then(|value| value.to_str().ok());
        let span = tracing::info_span!(
            target: "kiln::trace",
            parent: None,
            "request",
            title = Empty,
            kind = "server",
            request = id,
            user = Empty,
            project = Empty,
            client = client.map(tracing::field::display),
            stack = Empty,
            traceparent,
            http.request.method = method(head),
            http.route = Empty,
            url.path = head.uri.path(),
            http.response.status_code = Empty,
            error = Empty,
        );
        Self { id, span, begun: backends.clock.monotonic(), action: None, place: ("", None) }
    }

    /// The span of the request: its work is done in it.
    pub fn span(&self) -> Span {
        self.span.clone()
    }

    /// Adds the action of the request, for an API whose requests have the same path.
    #[must_use]
    pub fn of(self, action: Option<&'static str>) -> Self {
        Self { action, ..self }
    }

    /// Adds the API and the route of the request, for metrics; no route for paths that have none.
    #[must_use]
    pub fn at(self, api: &'static str, route: Option<&'static str>) -> Self {
        Self { place: (api, route), ..self }
    }

    /// Logs the request, and adds its ID to the response.
    pub fn end(self, backends: &Backends, head: &Parts, response: &mut Response) {
        // The line has the IDs of the span.
        let _within = self.span.enter();
        let spent = backends.clock.monotonic().saturating_sub(self.begun);
        let ms = u64::try_from(spent.as_millis()).unwrap_or(u64::MAX);
        let (path, status, id) = (head.uri.path(), response.status().as_u16(), &self.id);
        // Without the query, which may contain data that must not be logged.
        let action = self.action;
        let reason = response.extensions().get::<Reason>();
        let reason = reason.map(|Reason(text)| &text[..text.floor_char_boundary(LONGEST)]);
        tracing::info!(method = %head.method, path, action, status, ms, reason, "request");
        let (api, route) = self.place;
        let metric = if response.extensions().get::<Waited>().is_some() { "waits" } else { "requests" };
        let us = u64::try_from(spent.as_micros()).unwrap_or(u64::MAX);
        let method = method(head);
        let route = route.unwrap_or("none");
        let span = &self.span;
        span.record("title", tracing::field::display(format_args!("{method} {route}")));
        span.record("http.route", route);
        span.record("http.response.status_code", status);
        if response.status().is_server_error() {
            span.record("error", response.status().as_str());
        }
        tracing::trace!(target: "kiln::metric", metric, us, api, route, method, status);
        // Heat's own ID is in the log of Heat.
        let has_own = response.extensions().get::<Passed>().is_some() && response.headers().contains_key(REQUEST_ID);
        if !has_own && let Ok(id) = HeaderValue::from_str(id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
    }
}

/// The method, if metrics distinguish it.
fn method(head: &Parts) -> &str {
    let method = head.method.as_str();
    if KNOWN.contains(&method) { method } else { "other" }
}
