//! Sends HTTP requests: one trait, one shared client.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use url::Url;

/// An HTTP request.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// Method.
    pub method: Method,
    /// URL with query.
    pub url: Url,
    /// Headers; those that contain a token are marked sensitive.
    pub headers: HeaderMap,
    /// Body.
    pub body: Option<Bytes>,
    /// Timeout of the request.
    pub timeout: Duration,
}

/// The response to an [`HttpRequest`], with any status.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Complete body.
    pub body: Bytes,
}

impl HttpResponse {
    /// The text of a header; `None` if it is missing or not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// No connection: the service has not received the request.
    #[error("{0}")]
    Connect(String),
    /// No response in time: the operation may have been executed.
    #[error("the request timed out")]
    Timeout,
    /// The connection was lost: the operation may have been executed.
    #[error("{0}")]
    Broken(String),
}

/// Sends requests. Tests inject faults here.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends a request once. Redirects are not followed.
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError>;
}

/// TLS options of the client.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// Additional certificate authorities in PEM format (`cacert`).
    pub authorities: Option<Vec<u8>>,
    /// The client's own certificate and its key in PEM format (`cert`, `key`).
    pub identity: Option<Vec<u8>>,
    /// Do not verify certificates (`insecure`).
    pub insecure: bool,
}

/// [`Transport`] with one reqwest client, whose connections all sessions share.
#[derive(Clone, Debug)]
pub struct SharedClient(reqwest::Client);

impl SharedClient {
    /// Creates a client; fails if the certificates cannot be read.
    pub fn new(tls: &TlsOptions) -> Result<Self, TransportError> {
        Self::built(tls, |builder| builder)
    }

    /// Sends all requests, whatever their host, to a socket of the file system.
    pub fn to_socket(path: &Path) -> Result<Self, TransportError> {
        Self::built(&TlsOptions::default(), |builder| builder.unix_socket(path))
    }

    fn built(
        tls: &TlsOptions,
        adapt: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
    ) -> Result<Self, TransportError> {
        // Another part of the process may have installed the provider already: both are valid.
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
        if let Some(pem) = &tls.identity {
            builder = builder.identity(reqwest::Identity::from_pem(pem).map_err(broken)?);
        }
        adapt(builder).build().map(Self).map_err(broken)
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

/// The innermost cause: reqwest's own texts mostly repeat the URL.
fn chain(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
