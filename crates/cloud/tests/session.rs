//! Sessions against a made-up wire: tokens, repetition, limits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use kiln_cloud::{Connector, Credentials, HttpRequest, HttpResponse, Options, Transport, TransportError};
use kiln_resource::{Cloud, CloudRequest, FailureKind, Method};

/// Answers to a request other than for a token.
type Handler = dyn Fn(&HttpRequest, usize) -> Result<HttpResponse, TransportError> + Send + Sync;

/// A wire whose Keystone gives tokens `t1`, `t2` … of one hour, and whose one service is `handler`.
struct Wire {
    tokens: AtomicUsize,
    /// How many of the first replies with a token are lost.
    lost_tokens: AtomicUsize,
    calls: Mutex<Vec<String>>,
    handler: Box<Handler>,
    busy: AtomicUsize,
    busiest: AtomicUsize,
}

fn answer(status: u16, body: &str) -> HttpResponse {
    let status = StatusCode::from_u16(status).expect("a status");
    HttpResponse { status, headers: HeaderMap::new(), body: Bytes::copy_from_slice(body.as_bytes()) }
}

const TOKEN: &str = r#"{"token": {
    "user": {"id": "u", "name": "demo", "domain": {"id": "default", "name": "Default"}},
    "project": {"id": "p", "name": "demo", "domain": {"id": "default", "name": "Default"}},
    "roles": [{"id": "r", "name": "member"}],
    "issued_at": "2020-01-01T00:00:00.000000Z", "expires_at": "2020-01-01T01:00:00.000000Z",
    "catalog": [{"type": "network", "endpoints": [{"interface": "public", "region_id": "R", "url": "http://n:9696"}]}]
}}"#;

#[async_trait]
impl Transport for Wire {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        if request.url.path() == "/v3/auth/tokens" {
            let number = self.tokens.fetch_add(1, Ordering::SeqCst) + 1;
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
        let busy = self.busy.fetch_add(1, Ordering::SeqCst) + 1;
        self.busiest.fetch_max(busy, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(10)).await;
        self.busy.fetch_sub(1, Ordering::SeqCst);
        (self.handler)(&request, number)
    }
}

fn wire(
    handler: impl Fn(&HttpRequest, usize) -> Result<HttpResponse, TransportError> + Send + Sync + 'static,
) -> (Arc<Wire>, Connector) {
    let wire = Arc::new(Wire {
        tokens: AtomicUsize::new(0),
        lost_tokens: AtomicUsize::new(0),
        calls: Mutex::default(),
        handler: Box::new(handler),
        busy: AtomicUsize::new(0),
        busiest: AtomicUsize::new(0),
    });
    let mut options = Options::new("http://k:5000/v3".parse().expect("a URL"));
    options.concurrency = 2;
    (wire.clone(), Connector::new(wire, options))
}

fn credentials() -> Credentials {
    Credentials::password("demo", "secret", "demo", "Default")
}

fn get() -> CloudRequest {
    CloudRequest::new("network", Method::Get, "/v2.0/networks").query("name", "a b&c")
}

fn token_of(request: &HttpRequest) -> &str {
    request.headers.get("x-auth-token").and_then(|token| token.to_str().ok()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_token_serves_many_calls_and_is_renewed_before_it_ends() {
    let (wire, connector) = wire(|_, _| Ok(answer(200, "{}")));
    let cloud = connector.cloud(&credentials()).await;
    for _ in 0..5 {
        cloud.call(get()).await.expect("an answer");
    }
    assert_eq!(wire.tokens.load(Ordering::SeqCst), 1);
    tokio::time::advance(Duration::from_mins(56)).await;
    cloud.call(get()).await.expect("an answer");
    assert_eq!(wire.tokens.load(Ordering::SeqCst), 2);
    assert_eq!(wire.calls.lock().expect("no panic")[0], "GET http://n:9696/v2.0/networks?name=a+b%26c");
    // The same credentials share it.
    connector.cloud(&credentials()).await.call(get()).await.expect("an answer");
    assert_eq!(wire.tokens.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_renewed_once() {
    let (wire, connector) = wire(|request, _| Ok(answer(if token_of(request) == "t1" { 401 } else { 200 }, "{}")));
    let cloud = connector.cloud(&credentials()).await;
    cloud.call(get()).await.expect("an answer with the second token");
    assert_eq!(wire.tokens.load(Ordering::SeqCst), 2);

    let (wire, connector) = self::wire(|_, _| Ok(answer(401, "")));
    let failure = connector.cloud(&credentials()).await.call(get()).await.expect_err("refused twice");
    assert_eq!((failure.class.as_str(), failure.kind), ("Unauthorized", FailureKind::Refused));
    assert_eq!(wire.calls.lock().expect("no panic").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_given_token_cannot_be_renewed() {
    let (wire, connector) = wire(|_, _| Ok(answer(401, "")));
    let failure = connector.cloud(&Credentials::token("given")).await.call(get()).await.expect_err("refused");
    assert_eq!(failure.class, "Unauthorized");
    assert_eq!(wire.calls.lock().expect("no panic").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn reads_outlast_accidents_and_writes_are_sent_once() {
    let (_, connector) = wire(|_, number| match number {
        1 => Err(TransportError::Broken("reset".into())),
        2 => Ok(answer(503, "")),
        _ => Ok(answer(200, r#"{"networks": []}"#)),
    });
    let cloud = connector.cloud(&credentials()).await;
    assert!(cloud.call(get()).await.expect("the third answer").body.get("networks").is_some());

    let (wire, connector) = self::wire(|_, _| Err(TransportError::Broken("reset".into())));
    let cloud = connector.cloud(&credentials()).await;
    let post = CloudRequest::new("network", Method::Post, "/v2.0/networks").body(kiln_value::value!({"network": {}}));
    let failure = cloud.call(post).await.expect_err("lost");
    assert_eq!(failure.kind, FailureKind::Unavailable);
    let text = "ConnectFailure: Unable to establish connection to http://n:9696/v2.0/networks: reset";
    assert_eq!(failure.to_string(), text);
    assert_eq!(wire.calls.lock().expect("no panic").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_whose_reply_was_lost_is_asked_for_again() {
    let (wire, connector) = wire(|_, _| Ok(answer(200, "{}")));
    wire.lost_tokens.store(2, Ordering::SeqCst);
    connector.cloud(&credentials()).await.call(get()).await.expect("the third token");
    assert_eq!(wire.tokens.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn no_service_is_asked_too_much_at_a_time() {
    let (wire, connector) = wire(|_, _| Ok(answer(200, "{}")));
    let cloud = connector.cloud(&credentials()).await;
    let calls = (0..10).map(|_| {
        let cloud = cloud.clone();
        tokio::spawn(async move { cloud.call(get()).await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.expect("no panic").expect("an answer");
    }
    assert_eq!(wire.busiest.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn what_the_catalog_lacks_is_told() {
    let (_, connector) = wire(|_, _| Ok(answer(200, "{}")));
    let cloud = connector.cloud(&credentials()).await;
    let failure = cloud.call(CloudRequest::new("compute", Method::Get, "/servers")).await.expect_err("no Nova");
    assert_eq!(failure.to_string(), "EndpointNotFound: public endpoint for compute service not found");
    assert!(!cloud.has_service("compute").await.expect("an answer"));
    assert_eq!(cloud.project_id().await.expect("a project"), "p");
    assert_eq!(cloud.endpoint("network").await.expect("an answer").as_deref(), Some("http://n:9696"));
}
