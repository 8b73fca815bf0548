//! Sends HTTP requests: one trait, one shared client.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use http::{HeaderMap, Method, StatusCode};
use kiln_value::chain::innermost;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::address::{Addresses, NoNetwork};

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

/// A response whose body is read while it comes: a stream of events has no end.
pub struct StreamedResponse {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// The body in pieces.
    pub body: BoxStream<'static, Result<Bytes, TransportError>>,
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
    /// The host of a user's URL has no address that may be used: the request was not sent.
    #[error("no address of {0} may be used")]
    Address(String),
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
pub struct SharedClient {
    client: reqwest::Client,
    /// The addresses that may be used; `None`: all.
    allowed: Option<Arc<Addresses>>,
    /// The largest body of a response, in bytes.
    largest: usize,
}

impl SharedClient {
    /// Creates a client; fails if the certificates cannot be read.
    pub fn new(tls: &TlsOptions) -> Result<Self, TransportError> {
        Self::built(tls, |builder| builder)
    }

    /// Sends all requests, whatever their host, to a socket of the file system.
    pub fn to_socket(path: &Path) -> Result<Self, TransportError> {
        Self::built(&TlsOptions::default(), |builder| builder.unix_socket(path))
    }

    /// The same that reads no body with more bytes. Some services belong to users, who can send anything.
    #[must_use]
    pub fn reading_at_most(self, largest: usize) -> Self {
        Self { largest, ..self }
    }

    /// A client for URLs that users specify: it connects only to allowed addresses, and ignores the proxies of the
    /// environment, which would resolve the host again.
    pub(crate) fn of_users(tls: &TlsOptions, allowed: &Addresses) -> Result<Self, TransportError> {
        let allowed = Arc::new(allowed.clone());
        let resolver = Arc::new(Filter(Arc::clone(&allowed)));
        let client = Self::built(tls, |builder| builder.no_proxy().dns_resolver(resolver))?;
        Ok(Self { allowed: Some(allowed), ..client })
    }

    /// The same for addresses in these networks, as `10.1.0.0/16` or an address, and for public ones if `public` is set. A response
    /// with more than 1 MiB is refused.
    ///
    /// # Errors
    /// A text that is not a network; certificates that cannot be read.
    pub fn for_users(tls: &TlsOptions, networks: &[String], public: bool) -> Result<Self, TransportError> {
        let unreadable = |error: NoNetwork| TransportError::Connect(error.to_string());
        let allowed = if public { Addresses::new(networks) } else { Addresses::only(networks) }.map_err(unreadable)?;
        Ok(Self::of_users(tls, &allowed)?.reading_at_most(1 << 20))
    }

    fn built(
        tls: &TlsOptions,
        adapt: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
    ) -> Result<Self, TransportError> {
        // Another part of the process may have installed the provider already: both are valid.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let broken = |error: reqwest::Error| TransportError::Connect(innermost(&error).to_string());
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
        let client = adapt(builder).build().map_err(broken)?;
        Ok(Self { client, allowed: None, largest: usize::MAX })
    }
}

#[async_trait]
impl Transport for SharedClient {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        if let Some(allowed) = &self.allowed {
            check_literal(&request.url, allowed)?;
        }
        let mut builder =
            self.client.request(request.method, request.url).headers(request.headers).timeout(request.timeout);
        if let Some(body) = request.body {
            builder = builder.body(body);
        }
        let response = builder.send().await.map_err(|e| classify(&e))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = self.body(response).await?;
        Ok(HttpResponse { status, headers, body })
    }
}

impl SharedClient {
    /// Sends a request once; its timeout is not used, because the body may never end.
    ///
    /// # Errors
    /// There is no response.
    pub async fn stream(&self, request: HttpRequest) -> Result<StreamedResponse, TransportError> {
        let mut builder = self.client.request(request.method, request.url).headers(request.headers);
        if let Some(body) = request.body {
            builder = builder.body(body);
        }
        let response = builder.send().await.map_err(|e| classify(&e))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes_stream().map_err(|e| classify(&e)).boxed();
        Ok(StreamedResponse { status, headers, body })
    }

    async fn body(&self, mut response: reqwest::Response) -> Result<Bytes, TransportError> {
        if self.largest == usize::MAX {
            return response.bytes().await.map_err(|e| classify(&e));
        }
        let too_large = || TransportError::Broken(format!("the response has more than {} bytes", self.largest));
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| classify(&e))? {
            if chunk.len() > self.largest - body.len() {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }
}

/// An address in a URL is not resolved, so that [`Filter`] does not see it.
fn check_literal(url: &Url, allowed: &Addresses) -> Result<(), TransportError> {
    let is_allowed = match url.host() {
        Some(Host::Ipv4(address)) => allowed.allows(address.into()),
        Some(Host::Ipv6(address)) => allowed.allows(address.into()),
        Some(Host::Domain(_)) => true,
        None => false,
    };
    if is_allowed { Ok(()) } else { Err(TransportError::Address(url.host_str().unwrap_or_default().to_owned())) }
}

/// Resolves host names to allowed addresses. The connection is made to an address that was checked, whatever the name
/// server answers later.
struct Filter(Arc<Addresses>);

/// A name server lists no allowed address of this host.
#[derive(Debug, thiserror::Error)]
#[error("no address of {0} may be used")]
struct NoAddress(String);

impl Resolve for Filter {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = Arc::clone(&self.0);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.filter(|address| allowed.allows(address.ip())).collect();
            if found.is_empty() {
                return Err(NoAddress(name.as_str().to_owned()).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

fn classify(error: &reqwest::Error) -> TransportError {
    if let Some(NoAddress(host)) = innermost(error).downcast_ref() {
        TransportError::Address(host.clone())
    } else if error.is_connect() {
        TransportError::Connect(innermost(error).to_string())
    } else if error.is_timeout() {
        TransportError::Timeout
    } else {
        TransportError::Broken(innermost(error).to_string())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// The port of a server that answers with these bytes, and with more of them as long as they are read.
    async fn server(head: &'static str, more: &'static str) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let _ = stream.read(&mut [0; 1024]).await;
                    let _ = stream.write_all(head.as_bytes()).await;
                    while !more.is_empty() && stream.write_all(more.as_bytes()).await.is_ok() {}
                });
            }
        });
        port
    }

    async fn ask(client: &SharedClient, host: &str, port: u16) -> Result<usize, TransportError> {
        let request = HttpRequest {
            method: Method::GET,
            url: format!("http://{host}:{port}/").parse().unwrap(),
            headers: HeaderMap::new(),
            body: None,
            timeout: Duration::from_secs(20),
        };
        client.send(request).await.map(|response| response.body.len())
    }

    #[tokio::test]
    async fn clouds_of_users_are_at_allowed_addresses() {
        let port = server("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "").await;
        let client = |network: &str| {
            let allowed = Addresses::new(&[network.to_owned()]).unwrap();
            SharedClient::of_users(&TlsOptions::default(), &allowed).unwrap()
        };
        for host in ["127.0.0.1", "localhost", "[::1]", "2130706433", "[::ffff:127.0.0.1]"] {
            let refused = ask(&client("10.0.0.0/8"), host, port).await;
            assert!(matches!(refused, Err(TransportError::Address(_))), "{host}: {refused:?}");
        }
        assert_eq!(ask(&client("127.0.0.0/8"), "localhost", port).await, Ok(2));
    }

    #[tokio::test]
    async fn a_response_without_end_is_not_read_for_long() {
        let port = server("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "4\r\nmore\r\n").await;
        let client = SharedClient::new(&TlsOptions::default()).unwrap().reading_at_most(1 << 16);
        let refused = ask(&client, "127.0.0.1", port).await.unwrap_err();
        assert_eq!(refused.to_string(), "the response has more than 65536 bytes");
    }
}
