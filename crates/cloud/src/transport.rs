//! How a request reaches a service: one trait, one shared client.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use url::Url;

/// An HTTP request, ready to be sent.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// Method.
    pub method: Method,
    /// The whole URL with its query.
    pub url: Url,
    /// Headers; those that hold a token are marked sensitive.
    pub headers: HeaderMap,
    /// Body.
    pub body: Option<Bytes>,
    /// The longest time that the exchange may take.
    pub timeout: Duration,
}

/// The answer to an [`HttpRequest`], whatever its status.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body, whole.
    pub body: Bytes,
}

impl HttpResponse {
    /// A header's text; `None` if it is not there or no text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Why there was no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// No connection: the service has not seen the request.
    #[error("{0}")]
    Connect(String),
    /// No answer in time: the service may have done what was asked for.
    #[error("the request timed out")]
    Timeout,
    /// The connection broke: the service may have done what was asked for.
    #[error("{0}")]
    Broken(String),
}

/// Sends requests. Tests put faults between the session and the wire here.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends one request, once. Redirects are not followed.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError>;
}

/// What the shared client must know of the site's certificates.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// PEM text of further certificate authorities (`cacert`).
    pub authorities: Option<Vec<u8>>,
    /// Do not check certificates (`insecure`).
    pub insecure: bool,
}

/// [`Transport`] by one reqwest client, whose connections all sessions share.
#[derive(Clone, Debug)]
pub struct SharedClient(reqwest::Client);

impl SharedClient {
    /// A client; the error is that of unreadable certificates.
    pub fn new(tls: &TlsOptions) -> Result<Self, TransportError> {
        // Another part of the process may have installed the provider already: either is right.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let broken = |error: reqwest::Error| TransportError::Connect(chain(&error));
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("kiln/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(Duration::from_secs(10))
            .pool_idle_timeout(Duration::from_mins(1))
            .redirect(reqwest::redirect::Policy::none())
            .danger_accept_invalid_certs(tls.insecure);
        if let Some(pem) = &tls.authorities {
            for certificate in reqwest::Certificate::from_pem_bundle(pem).map_err(broken)? {
                builder = builder.add_root_certificate(certificate);
            }
        }
        builder.build().map(Self).map_err(broken)
    }
}

#[async_trait]
impl Transport for SharedClient {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let mut builder = self.0.request(request.method, request.url).headers(request.headers).timeout(request.timeout);
        if let Some(body) = request.body {
            builder = builder.body(body);
        }
        let response = builder.send().await.map_err(|e| classify(&e))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.map_err(|e| classify(&e))?;
        Ok(HttpResponse { status, headers, body })
    }
}

fn classify(error: &reqwest::Error) -> TransportError {
    if error.is_connect() {
        TransportError::Connect(chain(error))
    } else if error.is_timeout() {
        TransportError::Timeout
    } else {
        TransportError::Broken(chain(error))
    }
}

/// The innermost cause: reqwest's own texts repeat the URL and say little else.
fn chain(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
