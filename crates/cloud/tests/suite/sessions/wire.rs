//! A fake transport with a Keystone and a service that is implemented by a test.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use kiln_cloud::{Connector, Credentials, HttpRequest, HttpResponse, Options, Transport, TransportError};
use kiln_resource::{CloudRequest, Method};
use kiln_value::value;

/// Responds to requests other than token requests.
type Handler = dyn Fn(&HttpRequest, usize) -> Result<HttpResponse, TransportError> + Send + Sync;

/// A transport whose Keystone issues tokens `t1`, `t2` … of one hour, and whose service is `handler`.
pub(crate) struct Wire {
    pub(crate) tokens: AtomicUsize,
    /// Number of token responses that are lost.
    pub(crate) lost_tokens: AtomicUsize,
    pub(crate) calls: Mutex<Vec<String>>,
    /// Whether Keystone never responds.
    pub(crate) hangs: AtomicBool,
    /// Whether the service never responds.
    pub(crate) hangs_at_service: AtomicBool,
    /// Whether the service never responds to writes.
    pub(crate) hangs_at_writes: AtomicBool,
    /// The error status of Keystone; 0 for none.
    pub(crate) refuses: AtomicUsize,
    handler: Box<Handler>,
    busy: AtomicUsize,
    pub(crate) busiest: AtomicUsize,
}

pub(crate) fn answer(status: u16, body: &str) -> HttpResponse {
    let status = StatusCode::from_u16(status).expect("a status");
    HttpResponse { status, headers: HeaderMap::new(), body: Bytes::copy_from_slice(body.as_bytes()) }
}

const TOKEN: &str = r#"{"token": {
    "user": {"id": "u", "name": "demo", "domain": {"id": "default", "name": "Default"}},
    "project": {"id": "p", "name": "demo", "domain": {"id": "default", "name": "Default"}},
    "roles": [{"id": "r", "name": "member"}],
    "issued_at": "2020-01-01T00:00:00.000000Z", "expires_at": "2020-01-01T01:00:00.000000Z",
    "catalog": [{"type": "network", "endpoints": [{"interface": "public", "region_id": "R", "url": "http://n:9696"},
        {"interface": "internal", "region_id": "R", "url": "http://inside:9696"}]}]
}}"#;

#[async_trait]
impl Transport for Wire {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        if request.url.path() == "/v3/auth/tokens" {
            let number = self.tokens.fetch_add(1, Ordering::SeqCst) + 1;
            if self.hangs.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            if let Ok(status @ 400..) = u16::try_from(self.refuses.load(Ordering::SeqCst)) {
                return Ok(answer(status, r#"{"error": {"message": "Could not find trust: t."}}"#));
            }
            if number <= self.lost_tokens.load(Ordering::SeqCst) {
                return Err(TransportError::Broken("reset".into()));
            }
            let mut response = answer(201, TOKEN);
            response.headers.insert("x-subject-token", format!("t{number}").parse().expect("a header"));
            return Ok(response);
        }
        let number = {
            let mut calls = self.calls.lock().expect("no panic elsewhere");
            calls.push(format!("{} {}", request.method, request.url));
            calls.len()
        };
        let is_write = request.method != http::Method::GET;
        if self.hangs_at_service.load(Ordering::SeqCst) || is_write && self.hangs_at_writes.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        let busy = self.busy.fetch_add(1, Ordering::SeqCst) + 1;
        self.busiest.fetch_max(busy, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(10)).await;
        self.busy.fetch_sub(1, Ordering::SeqCst);
        (self.handler)(&request, number)
    }
}

/// At most two requests are sent at the same time.
pub(crate) fn wire(
    handler: impl Fn(&HttpRequest, usize) -> Result<HttpResponse, TransportError> + Send + Sync + 'static,
) -> (Arc<Wire>, Connector) {
    wide_wire(2, handler)
}

/// At most `concurrency` requests are sent at the same time.
pub(crate) fn wide_wire(
    concurrency: usize,
    handler: impl Fn(&HttpRequest, usize) -> Result<HttpResponse, TransportError> + Send + Sync + 'static,
) -> (Arc<Wire>, Connector) {
    let wire = Arc::new(Wire {
        tokens: AtomicUsize::new(0),
        lost_tokens: AtomicUsize::new(0),
        hangs: AtomicBool::new(false),
        hangs_at_service: AtomicBool::new(false),
        hangs_at_writes: AtomicBool::new(false),
        refuses: AtomicUsize::new(0),
        calls: Mutex::default(),
        handler: Box::new(handler),
        busy: AtomicUsize::new(0),
        busiest: AtomicUsize::new(0),
    });
    let mut options = Options::new("http://k:5000/v3".parse().expect("a URL"));
    options.concurrency = concurrency;
    (wire.clone(), Connector::new(wire, options))
}

pub(crate) fn credentials() -> Credentials {
    Credentials::password("demo", "secret", "demo", "Default")
}

pub(crate) fn get() -> CloudRequest {
    CloudRequest::new("network", Method::Get, "/v2.0/networks").query("name", "a b&c")
}

pub(crate) fn token_of(request: &HttpRequest) -> &str {
    request.headers.get("x-auth-token").and_then(|token| token.to_str().ok()).unwrap_or_default()
}

pub(crate) fn post() -> CloudRequest {
    CloudRequest::new("network", Method::Post, "/v2.0/networks").body(value!({"network": {}}))
}

/// A response with a header.
pub(crate) fn answer_with(status: u16, header: (&'static str, &str), body: &str) -> HttpResponse {
    let mut response = answer(status, body);
    response.headers.insert(header.0, header.1.parse().expect("a header"));
    response
}

impl Wire {
    /// Number of calls of the service.
    pub(crate) fn called(&self) -> usize {
        self.calls.lock().expect("no panic elsewhere").len()
    }

    /// Number of token requests.
    pub(crate) fn asked(&self) -> usize {
        self.tokens.load(Ordering::SeqCst)
    }
}
