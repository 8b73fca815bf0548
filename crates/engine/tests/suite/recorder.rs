//! Records the requests between an engine and a simulated cloud, independently of both.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use kiln_cloud::{HttpRequest, HttpResponse, Transport, TransportError};
use serde_json::Value;

/// A request and its response.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) method: String,
    /// The service, as the first segment of its path: `network`.
    pub(crate) service: String,
    /// The path after the version, without the project: `/ports/5f…`.
    pub(crate) path: String,
    /// Null: there is none, or it is no JSON.
    pub(crate) body: Value,
    /// The body of the response.
    pub(crate) answer: Value,
    /// The status of the response; 0: there was none.
    pub(crate) status: u16,
}

/// A transport that records what goes through it.
pub(crate) struct Recorder {
    inner: Arc<dyn Transport>,
    seen: Mutex<Vec<Recorded>>,
}

impl Recorder {
    pub(crate) fn new(inner: Arc<dyn Transport>) -> Arc<Self> {
        Arc::new(Self { inner, seen: Mutex::default() })
    }

    /// The requests since the last call.
    pub(crate) fn take(&self) -> Vec<Recorded> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Transport for Recorder {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let json = |bytes: &[u8]| serde_json::from_slice(bytes).unwrap_or_default();
        let mut segments = request.url.path().split('/').skip(1);
        let service = segments.next().unwrap_or_default().to_owned();
        // The version; block storage has the project in its paths.
        let rest: Vec<&str> = segments.skip(if service == "volume" { 2 } else { 1 }).collect();
        let mut recorded = Recorded {
            method: request.method.to_string(),
            service,
            path: format!("/{}", rest.join("/")),
            body: request.body.as_deref().map(json).unwrap_or_default(),
            answer: Value::Null,
            status: 0,
        };
        let response = self.inner.send(request).await;
        if let Ok(response) = &response {
            (recorded.status, recorded.answer) = (response.status.as_u16(), json(&response.body));
        }
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(recorded);
        response
    }
}
