//! Calls the receivers of webhooks.
//!
//! Users choose the URLs. A connection is made to an address that was checked: a public one, or one of a network that the operator
//! lists. Plain HTTP is for these networks only. Redirects are not followed.

use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use kiln_cloud::{HttpRequest, HttpResponse, SharedClient, Transport as _, TransportError};
use kiln_engine::{ReceiverAnswer, SignedEvent, WebhookSender};
use kiln_value::Secret;
use url::Url;

use crate::signature::signatures;

/// The media type of a `CloudEvent` in JSON.
const CLOUD_EVENT: &str = "application/cloudevents+json; charset=utf-8";

/// Calls receivers.
#[derive(Clone, Debug)]
pub struct Sender {
    /// For HTTPS.
    pub(crate) public: SharedClient,
    /// For HTTP: only listed networks.
    pub(crate) listed: SharedClient,
    /// The name of this service for receivers (`WebHook-Request-Origin`).
    pub(crate) origin: HeaderValue,
    pub(crate) timeout: Duration,
}

#[async_trait]
impl WebhookSender for Sender {
    async fn ask(&self, url: &Secret<String>) -> Result<Option<u32>, String> {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static("webhook-request-origin"), self.origin.clone());
        let answer = self.call(Method::OPTIONS, url, headers, None).await?;
        let allowed = answer.header("webhook-allowed-origin").unwrap_or_default();
        let is_allowed =
            allowed == "*" || allowed.split(',').any(|one| one.trim().as_bytes() == self.origin.as_bytes());
        if !answer.status.is_success() || !is_allowed {
            let (status, origin) = (answer.status.as_u16(), self.origin.to_str().unwrap_or_default());
            return Err(format!(
                "the receiver has not allowed events: it must answer OPTIONS with WebHook-Allowed-Origin: {origin} (its answer has \
                 status {status} and WebHook-Allowed-Origin: {allowed:?})"
            ));
        }
        // A star is no limit.
        Ok(answer.header("webhook-allowed-rate").and_then(|rate| rate.trim().parse().ok()))
    }

    async fn send(&self, event: SignedEvent<'_>) -> Result<ReceiverAnswer, String> {
        let signatures = signatures(&event.keys, event.id, event.time, event.body);
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", CLOUD_EVENT.to_owned()),
            ("webhook-id", event.id.to_string()),
            ("webhook-timestamp", event.time.as_second().to_string()),
            ("webhook-signature", signatures),
        ] {
            let value = HeaderValue::from_str(&value).map_err(|error| error.to_string())?;
            headers.insert(HeaderName::from_static(name), value);
        }
        let answer = self.call(Method::POST, event.url, headers, Some(event.body.to_owned())).await?;
        let retry_after =
            answer.header("retry-after").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
        Ok(ReceiverAnswer { status: answer.status.as_u16(), retry_after })
    }
}

impl Sender {
    async fn call(
        &self,
        method: Method,
        url: &Secret<String>,
        headers: HeaderMap,
        body: Option<String>,
    ) -> Result<HttpResponse, String> {
        let url: Url = url.expose().parse().map_err(|_| "the URL cannot be read".to_owned())?;
        let client = if url.scheme() == "http" { &self.listed } else { &self.public };
        let request = HttpRequest { method, url, headers, body: body.map(Into::into), timeout: self.timeout };
        let is_plain = request.url.scheme() == "http";
        match client.send(request).await {
            Ok(answer) => Ok(answer),
            Err(TransportError::Address(host)) if is_plain => Err(format!(
                "no address of {host} may be used without TLS: use https, or ask the operator for [webhooks] networks"
            )),
            Err(TransportError::Address(host)) => {
                Err(format!("no address of {host} may be used: it is not public, nor in [webhooks] networks"))
            }
            Err(why) => Err(why.to_string()),
        }
    }
}
