//! A transport to a cloud within the same process.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, StatusCode};
use kiln_cloud::{HttpRequest, HttpResponse, Transport, TransportError};

use crate::cloud::Shared;
use crate::reply::{Body, Reply};
use crate::request::ServiceCall;
use crate::server;

/// Passes requests to the services of the cloud without a connection.
pub(crate) struct InProcess(Arc<Shared>);

impl InProcess {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        InProcess(shared)
    }
}

#[async_trait]
impl Transport for InProcess {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let (path, query) = (request.url.path(), request.url.query().unwrap_or_default());
        let body = request.body.unwrap_or_default();
        let call = ServiceCall::new(request.method.as_str(), path, query, request.headers, body);
        let Some(call) = call else { return Ok(response(Reply::empty(404))) };
        let answered = tokio::time::timeout(request.timeout, server::exchange(Arc::clone(&self.0), call)).await;
        match answered {
            Err(_) => Err(TransportError::Timeout),
            Ok(None) => Err(TransportError::Broken("connection closed before message completed".to_owned())),
            Ok(Some(reply)) => Ok(response(reply)),
        }
    }
}

fn response(reply: Reply) -> HttpResponse {
    let (kind, body) = match reply.body {
        Body::Empty => (None, Bytes::new()),
        Body::Json(value) => (Some("application/json"), Bytes::from(value.to_string())),
        Body::Text(text) => (Some("text/plain; charset=UTF-8"), Bytes::from(text)),
        Body::Bytes(bytes) => (Some("application/octet-stream"), bytes),
    };
    let mut headers: HeaderMap = reply
        .headers
        .into_iter()
        .filter_map(|(name, value)| Some((name, HeaderValue::try_from(value).ok()?)))
        .collect();
    if let Some(kind) = kind {
        headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
    }
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    HttpResponse { status, headers, body }
}
