//! Reads texts from URLs that users specify, without giving them access to the network of the service.
//!
//! A host is resolved once, and the connection is made to an address that was checked: a name server that answers
//! differently the second time has no effect. Redirects are followed with the same checks, and proxies of the
//! environment are not used, because they would resolve the host again.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use http::StatusCode;
use http::header::LOCATION;
use kiln_value::chain::innermost;
use url::{Host, Url};

use crate::address::{Addresses, NoNetwork};

/// Redirects that are followed.
const REDIRECTS: usize = 5;

/// Why a text could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    /// It is not a URL of HTTP; its scheme.
    #[error("invalid URL scheme {0}")]
    Scheme(String),
    /// The host has no address that may be used.
    #[error("no address of {0} may be used")]
    Address(String),
    /// The text is too large.
    #[error("more than {0} bytes")]
    Size(usize),
    /// The server did not return a text in time. The reason is for the log: it would tell users about networks.
    #[error("{0}")]
    Failed(String),
}

type Resolve = dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync;

/// Reads texts from URLs of users. Addresses that are not public are refused, and so are those of this machine, except
/// in networks that the operator lists.
#[derive(Clone)]
pub struct WebReader {
    allowed: Addresses,
    timeout: Duration,
    resolve: Arc<Resolve>,
}

impl WebReader {
    /// A reader that may also use these networks, as `10.1.0.0/16` or an address. `timeout` limits a read with its
    /// redirects.
    ///
    /// # Errors
    /// A text that is not a network.
    pub fn new(networks: &[String], timeout: Duration) -> Result<Self, NoNetwork> {
        let allowed = Addresses::new(networks)?;
        let resolve =
            |host: String, port| async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) }.boxed();
        Ok(Self { allowed, timeout, resolve: Arc::new(resolve) })
    }

    /// The text at a URL, of at most `limit` bytes.
    pub async fn read(&self, url: &str, limit: usize) -> Result<String, WebError> {
        let read = tokio::time::timeout(self.timeout, self.follow(url, limit)).await;
        read.unwrap_or_else(|_| Err(WebError::Failed("timeout".to_owned())))
    }

    async fn follow(&self, url: &str, limit: usize) -> Result<String, WebError> {
        let mut url = Url::parse(url).map_err(|_| WebError::Scheme(url.split(':').next().unwrap_or("").to_owned()))?;
        for _ in 0..=REDIRECTS {
            let response = self.send(&url).await?;
            if !response.status().is_redirection() {
                return text(response, limit).await;
            }
            let next = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
            let next = next.and_then(|location| url.join(location).ok());
            url = next.ok_or_else(|| WebError::Failed("a redirect without a location".to_owned()))?;
        }
        Err(WebError::Failed(format!("more than {REDIRECTS} redirects")))
    }

    async fn send(&self, url: &Url) -> Result<reqwest::Response, WebError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(WebError::Scheme(url.scheme().to_owned()));
        }
        let addresses = self.addresses(url).await?;
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .user_agent(concat!("kiln/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .resolve_to_addrs(url.host_str().unwrap_or_default(), &addresses)
            .build()
            .map_err(|error| failed(&error))?;
        client.get(url.clone()).send().await.map_err(|error| failed(&error))
    }

    /// The addresses of a host that may be used: at least one.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, WebError> {
        let port = url.port_or_known_default().unwrap_or(80);
        let mut addresses = match url.host() {
            Some(Host::Ipv4(address)) => vec![SocketAddr::new(address.into(), port)],
            Some(Host::Ipv6(address)) => vec![SocketAddr::new(address.into(), port)],
            Some(Host::Domain(name)) => (self.resolve)(name.to_owned(), port).await.map_err(|error| failed(&error))?,
            None => Vec::new(),
        };
        addresses.retain(|address| self.allowed.allows(address.ip()));
        if addresses.is_empty() {
            return Err(WebError::Address(url.host_str().unwrap_or_default().to_owned()));
        }
        Ok(addresses)
    }
}

async fn text(mut response: reqwest::Response, limit: usize) -> Result<String, WebError> {
    if response.status() != StatusCode::OK {
        return Err(WebError::Failed(format!("status {}", response.status())));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
        if bytes.len() + chunk.len() > limit {
            return Err(WebError::Size(limit));
        }
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8(bytes).map_err(|error| failed(&error))
}

fn failed(error: &(dyn std::error::Error + 'static)) -> WebError {
    WebError::Failed(innermost(error).to_string())
}

#[cfg(test)]
mod tests;
