//! The transport of the sweep: counts the calls of an operation and injects a fault into one of them.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use kiln_cloud::{HttpRequest, HttpResponse, Transport, TransportError};
use tokio::sync::Notify;

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disturbance {
    /// The connection fails.
    NotSent,
    /// The service fails without executing the call.
    Fails,
    /// The service executes the call, and the connection breaks.
    ReplyLost,
    /// The service executes the call, and its gateway times out.
    GatewayTimeout,
    /// The service executes the call, and its successful response is truncated.
    ReplyCut,
    /// The engine fails before the service receives the call.
    DeathBefore,
    /// The engine fails after the service has executed the call.
    DeathAfter,
}

impl Disturbance {
    /// The disturbances that make a difference for a call. For a driver, a late or truncated response is the same as a
    /// lost one: it is sufficient to test them where objects are created.
    pub(crate) fn of(call: &str) -> &'static [Self] {
        match call.split(' ').next() {
            Some("GET") => &[Self::Fails, Self::DeathBefore],
            Some("POST") => &[
                Self::NotSent,
                Self::Fails,
                Self::ReplyLost,
                Self::GatewayTimeout,
                Self::ReplyCut,
                Self::DeathBefore,
                Self::DeathAfter,
            ],
            _ => &[Self::NotSent, Self::Fails, Self::ReplyLost, Self::DeathBefore, Self::DeathAfter],
        }
    }
}

/// A transport that disturbs one call after it is armed.
pub(crate) struct Wire {
    inner: Arc<dyn Transport>,
    state: Mutex<State>,
    /// Notifies that the engine fails.
    pub(crate) death: Arc<Notify>,
}

#[derive(Default)]
struct State {
    calls: Vec<String>,
    disturbed: Option<(usize, Disturbance)>,
}

impl Wire {
    pub(crate) fn new(inner: Arc<dyn Transport>) -> Self {
        Self { inner, state: Mutex::default(), death: Arc::default() }
    }

    /// Counts calls from now on, and disturbs the one with this number (from 1).
    pub(crate) fn arm(&self, disturbed: Option<(usize, Disturbance)>) {
        *self.state.lock().unwrap() = State { calls: Vec::new(), disturbed };
    }

    /// The calls since it was armed.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.state.lock().unwrap().calls.clone()
    }

    async fn die(&self) -> ! {
        self.death.notify_one();
        std::future::pending::<()>().await;
        unreachable!("a dead engine does not continue")
    }
}

fn answer(status: u16, body: &str) -> HttpResponse {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse().unwrap());
    HttpResponse {
        status: StatusCode::from_u16(status).unwrap(),
        headers,
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

#[async_trait]
impl Transport for Wire {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        if request.url.path().ends_with("/auth/tokens") {
            return self.inner.send(request).await;
        }
        let disturbance = {
            let mut state = self.state.lock().unwrap();
            state.calls.push(format!("{} {}", request.method, request.url.path()));
            let number = state.calls.len();
            state.disturbed.filter(|(at, _)| *at == number).map(|(_, disturbance)| disturbance)
        };
        match disturbance {
            None => self.inner.send(request).await,
            Some(Disturbance::NotSent) => Err(TransportError::Connect("refused".into())),
            Some(Disturbance::Fails) => Ok(answer(500, "{}")),
            Some(Disturbance::DeathBefore) => self.die().await,
            Some(after) => {
                let done = self.inner.send(request).await?;
                match after {
                    Disturbance::ReplyLost => Err(TransportError::Broken("reset".into())),
                    Disturbance::GatewayTimeout => Ok(answer(504, "{}")),
                    // An error response is unambiguous even if it is truncated.
                    Disturbance::ReplyCut if done.status.is_success() => Ok(answer(done.status.as_u16(), "{\"cut")),
                    Disturbance::ReplyCut => Ok(done),
                    _ => self.die().await,
                }
            }
        }
    }
}
