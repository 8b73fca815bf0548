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
    /// There is no connection.
    NotSent,
    /// The service fails before it does anything.
    Fails,
    /// The service does it, and the connection breaks.
    ReplyLost,
    /// The service does it, and the gateway in front of it has waited too long.
    GatewayTimeout,
    /// The service does it, and its answer says yes and is cut off.
    ReplyCut,
    /// The engine dies before the service hears of the call.
    DeathBefore,
    /// The engine dies when the service has done it.
    DeathAfter,
}

impl Disturbance {
    /// Those that make a difference to a call. A reply that comes too late or in part is to a driver one that is lost:
    /// it is enough to try that where objects are made.
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

/// A transport that disturbs one call after it was armed.
pub(crate) struct Wire {
    inner: Arc<dyn Transport>,
    state: Mutex<State>,
    death: Notify,
}

#[derive(Default)]
struct State {
    calls: Vec<String>,
    disturbed: Option<(usize, Disturbance)>,
}

impl Wire {
    pub(crate) fn new(inner: Arc<dyn Transport>) -> Self {
        Self { inner, state: Mutex::default(), death: Notify::new() }
    }

    /// Counts from now on, and disturbs the call of this number (from 1).
    pub(crate) fn arm(&self, disturbed: Option<(usize, Disturbance)>) {
        *self.state.lock().unwrap() = State { calls: Vec::new(), disturbed };
    }

    /// The calls since it was armed.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.state.lock().unwrap().calls.clone()
    }

    /// Waits until the engine is to die.
    pub(crate) async fn death(&self) {
        self.death.notified().await;
    }

    async fn die(&self) -> ! {
        self.death.notify_one();
        std::future::pending::<()>().await;
        unreachable!("nobody waits for the dead")
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
                    // A refusal is a refusal, however much of it arrives.
                    Disturbance::ReplyCut if done.status.is_success() => Ok(answer(done.status.as_u16(), "{\"cut")),
                    Disturbance::ReplyCut => Ok(done),
                    _ => self.die().await,
                }
            }
        }
    }
}
