//! The API in this process as a [`Transport`]. `--local` opens no port, so that other users of the machine cannot
//! access it.

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use kiln_cloud::{HttpRequest, HttpResponse, Transport, TransportError};
use tower::ServiceExt as _;

/// The host of URLs that are handled in this process.
pub const HOST: &str = "kiln.invalid";

/// Handles requests with a router.
pub struct InProcess(Router);

impl InProcess {
    /// A transport to this router.
    pub fn new(router: Router) -> Self {
        Self(router)
    }
}

#[async_trait]
impl Transport for InProcess {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let broken = |error: &dyn std::error::Error| TransportError::Broken(error.to_string());
        let length = request.body.as_ref().map_or(0, bytes::Bytes::len);
        let mut sent = http::Request::new(request.body.map_or_else(Body::empty, Body::from));
        *sent.method_mut() = request.method;
        *sent.uri_mut() = request.url.as_str().parse().map_err(|error: http::uri::InvalidUri| broken(&error))?;
        *sent.headers_mut() = request.headers;
        // As in HTTP, the API ignores a body without a length.
        sent.headers_mut().insert(http::header::CONTENT_LENGTH, length.into());
        let answer = async {
            let response = match self.0.clone().oneshot(sent).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            let (head, body) = response.into_parts();
            let body = to_bytes(body, usize::MAX).await.map_err(|error| broken(&error))?;
            Ok(HttpResponse { status: head.status, headers: head.headers, body })
        };
        tokio::time::timeout(request.timeout, answer).await.unwrap_or(Err(TransportError::Timeout))
    }
}
