//! A session: gets tokens for credentials and sends requests with them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method as HttpMethod, StatusCode};
use kiln_resource::{CloudRequest, CloudResponse, Method};
use kiln_value::{Map, Secret, Value};
use url::Url;

use crate::catalog::{self, Interface, official_type};
use crate::credentials::{Credentials, Scope, with_passcode};
use crate::error::CloudError;
use crate::exchange::{Exchange, Target};
use crate::request_retry::RetryPolicy;
use crate::token::{Token, TokenEnvelope, TokenInfo};
use crate::token_keeper::TokenKeeper;
use crate::transport::{HttpRequest, HttpResponse, Transport};

/// Session options.
#[derive(Clone, Debug)]
pub struct Options {
    /// URL of Keystone, with or without `/v3`.
    pub auth_url: Url,
    /// Region of the endpoints; `None` means any region.
    pub region: Option<String>,
    /// Endpoint interface.
    pub interface: Interface,
    /// Endpoint interfaces of single services, by official service type.
    pub interfaces: HashMap<String, Interface>,
    /// Endpoints that override the catalog, by service type.
    pub endpoint_overrides: HashMap<String, Url>,
    /// Timeout of one request.
    pub timeout: Duration,
    /// Retries of sessions; clouds for engines use none.
    pub retry: RetryPolicy,
    /// Maximum number of concurrent requests to one service, over all sessions.
    pub concurrency: usize,
    /// How long the results of finders and lists of extensions are cached.
    pub finder_ttl: Duration,
    /// Seed for the randomization of retries.
    pub seed: u64,
}

impl Options {
    /// Endpoint interface of a service.
    fn interface_of(&self, service: &str) -> Interface {
        self.interfaces.get(official_type(service)).copied().unwrap_or(self.interface)
    }

    /// Default options with a Keystone.
    pub fn new(auth_url: Url) -> Self {
        Self {
            auth_url,
            region: None,
            interface: Interface::Public,
            interfaces: HashMap::new(),
            endpoint_overrides: HashMap::new(),
            timeout: Duration::from_mins(1),
            retry: RetryPolicy::default(),
            concurrency: 64,
            finder_ttl: Duration::from_mins(1),
            seed: 0,
        }
    }
}

/// Manages the token of the credentials, finds endpoints and sends requests. Cheap to clone.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
    retry: RetryPolicy,
}

struct Inner {
    exchange: Arc<Exchange>,
    credentials: Credentials,
    tokens: Arc<TokenKeeper>,
}

impl Session {
    /// A session that retries requests as the options specify.
    pub(crate) fn new(exchange: Arc<Exchange>, credentials: Credentials) -> Self {
        let retry = exchange.options.retry;
        Self { inner: Arc::new(Inner { exchange, credentials, tokens: Arc::default() }), retry }
    }

    /// A session with a valid token, used as it is: Keystone refuses to show the token of a trust to itself.
    pub(crate) fn with_token(exchange: Arc<Exchange>, token: Token) -> Self {
        let retry = exchange.options.retry;
        let credentials = Credentials::Token { token: token.secret.clone(), scope: Scope::Unscoped };
        Self { inner: Arc::new(Inner { exchange, credentials, tokens: Arc::new(TokenKeeper::of(token)) }), retry }
    }

    /// The same session with the same token and another retry policy.
    #[must_use]
    pub fn with_retries(&self, retry: RetryPolicy) -> Self {
        Self { inner: Arc::clone(&self.inner), retry }
    }

    /// The same session with the same credentials and token; requests to one service use another transport.
    pub(crate) fn with_transport(&self, service: &str, transport: Arc<dyn Transport>) -> Self {
        let exchange = Arc::new(self.inner.exchange.with_transport(service, transport));
        let (credentials, tokens) = (self.inner.credentials.clone(), Arc::clone(&self.inner.tokens));
        Self { inner: Arc::new(Inner { exchange, credentials, tokens }), retry: self.retry }
    }

    pub(crate) fn options(&self) -> &Options {
        &self.inner.exchange.options
    }

    /// The time by the clock of a service, if it has responded recently: in seconds since 1970, rounded down.
    pub(crate) fn time(&self, service: &str) -> Option<i64> {
        self.inner.exchange.time(service)
    }

    /// The credentials.
    pub fn credentials(&self) -> &Credentials {
        &self.inner.credentials
    }

    /// The token. It is renewed before it expires, while the old one stays in use. Without a valid token, all callers
    /// wait for one request, each within the timeout of a request. Every error is [`CloudError::NoToken`].
    pub async fn token(&self) -> Result<Arc<Token>, CloudError> {
        let mut attempt = 0;
        loop {
            let ask = || {
                // A separate background request that all callers share, without the retries of any caller.
                let session = self.with_retries(RetryPolicy::none());
                async move { session.authenticate().await }
            };
            let error = match self.inner.tokens.token(self.options().timeout, ask).await {
                Ok(token) => return Ok(token),
                Err(error) => error,
            };
            let outcome = match &error {
                CloudError::Transport { error, .. } => Some(Err(error)),
                CloudError::Status { response, .. } => Some(Ok(&**response)),
                _ => None,
            };
            // A token that nobody received is harmless: requesting another one is as safe as a read.
            let wait = outcome.and_then(|o| self.retry.wait(true, o, attempt, self.inner.exchange.chance()));
            let Some(wait) = wait else {
                let credential = self.inner.credentials.describe();
                return Err(CloudError::NoToken { credential, cause: Box::new(error) });
            };
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    /// The token, renewed if it is the one that a service rejected.
    pub(crate) async fn token_other_than(&self, refused: Option<&Secret<String>>) -> Result<Arc<Token>, CloudError> {
        let token = self.token().await?;
        if refused == Some(&token.secret) && self.forget(&token) {
            return self.token().await;
        }
        Ok(token)
    }

    /// Drops a token that a service rejected. Returns whether a new one can be requested.
    fn forget(&self, refused: &Token) -> bool {
        let can_renew = self.inner.credentials.auth_request().is_some();
        if can_renew {
            self.inner.tokens.forget(refused);
        }
        can_renew
    }

    /// Requests a token from Keystone.
    async fn authenticate(&self) -> Result<Token, CloudError> {
        let mut token = self.ask_token().await?;
        token.info.catalog = self.inner.exchange.shared_catalog(std::mem::take(&mut token.info.catalog));
        Ok(token)
    }

    async fn ask_token(&self) -> Result<Token, CloudError> {
        match (&self.inner.credentials, self.inner.credentials.auth_request()) {
            (_, Some(body)) => self.issue(&body).await,
            (Credentials::Token { token, scope: Scope::Unscoped }, None) => {
                Ok(Token::new(token.clone(), self.validate(token, token, false).await?))
            }
            _ => Err(CloudError::NoEndpoint {
                service: "identity".into(),
                interface: "public",
                region: self.options().region.clone(),
            }),
        }
    }

    /// A token for the password of the session and a one-time password (TOTP), which is good for one request: the session
    /// does not keep it. `None`: the session has no password.
    pub async fn token_by_passcode(&self, passcode: &Secret<String>) -> Option<Result<Token, CloudError>> {
        let request = with_passcode(self.inner.credentials.auth_request()?, passcode)?;
        Some(self.issue(&request).await)
    }

    async fn issue(&self, body: &Value) -> Result<Token, CloudError> {
        let mut headers = json_headers();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = Some(json_bytes(body)?);
        issued(&self.keystone(HttpMethod::POST, headers, body).await?)
    }

    /// Validates a token, authorized by the token of the session; if Keystone rejects that one, by a new one.
    pub(crate) async fn inspect(&self, subject: &Secret<String>, expired: bool) -> Result<TokenInfo, CloudError> {
        let own = self.token().await?;
        match self.validate(&own.secret, subject, expired).await {
            Err(error) if error.status() == Some(401) && self.forget(&own) => {
                let own = self.token().await?;
                self.validate(&own.secret, subject, expired).await
            }
            answered => answered,
        }
    }

    /// Validates a token, authorized by another token.
    async fn validate(
        &self,
        own: &Secret<String>,
        subject: &Secret<String>,
        expired: bool,
    ) -> Result<TokenInfo, CloudError> {
        let mut headers = json_headers();
        headers.insert("x-auth-token", secret_header(own)?);
        headers.insert("x-subject-token", secret_header(subject)?);
        let query = expired.then_some("allow_expired=1");
        token_info(&self.keystone_at("/v3/auth/tokens", query, HttpMethod::GET, headers, None).await?)
    }

    /// Revokes the token of the session.
    pub(crate) async fn revoke(&self) -> Result<(), CloudError> {
        let own = self.token().await?;
        let mut headers = json_headers();
        headers.insert("x-auth-token", secret_header(&own.secret)?);
        headers.insert("x-subject-token", secret_header(&own.secret)?);
        self.keystone(HttpMethod::DELETE, headers, None).await.map(drop)
    }

    /// The token of the user whose EC2 key signed a request (`POST /v3/ec2tokens`). A wrong signature is a
    /// [`CloudError::Status`] of 401.
    ///
    /// Keystone also answers 401 if it rejects the token of the session. This token is validated then, so that wrong
    /// signatures, which anybody can send, do not cause new tokens.
    pub(crate) async fn exchange_signature(&self, body: &Value) -> Result<Token, CloudError> {
        let own = self.token().await?;
        let refused = match self.ask_for_signer(&own.secret, body).await {
            Err(error) if error.status() == Some(401) => error,
            answered => return answered,
        };
        match self.validate(&own.secret, &own.secret, false).await {
            Err(error) if matches!(error.status(), Some(401 | 404)) && self.forget(&own) => {
                let own = self.token().await?;
                self.ask_for_signer(&own.secret, body).await
            }
            _ => Err(refused),
        }
    }

    async fn ask_for_signer(&self, own: &Secret<String>, body: &Value) -> Result<Token, CloudError> {
        let mut headers = json_headers();
        headers.insert("x-auth-token", secret_header(own)?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let response =
            self.keystone_at("/v3/ec2tokens", None, HttpMethod::POST, headers, Some(json_bytes(body)?)).await?;
        issued(&response)
    }

    async fn keystone(
        &self,
        method: HttpMethod,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<HttpResponse, CloudError> {
        self.keystone_at("/v3/auth/tokens", None, method, headers, body).await
    }

    async fn keystone_at(
        &self,
        path: &str,
        query: Option<&str>,
        method: HttpMethod,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<HttpResponse, CloudError> {
        let mut url = catalog::join(&self.options().auth_url, "identity", path, None)
            .ok_or_else(|| invalid("identity", "auth_url cannot be a base"))?;
        url.set_query(query);
        let request = HttpRequest { method, url, headers, body, timeout: self.options().timeout };
        let target = Target { service: "identity", region: None, gate: None };
        accepted("identity", self.inner.exchange.send(target, request, true, &self.retry).await?)
    }

    /// The URL for a path of a service.
    fn url(&self, service: &str, path: &str, region: Option<&str>, token: Option<&Token>) -> Result<Url, CloudError> {
        let options = self.options();
        let region = region.or(options.region.as_deref());
        let given = options.endpoint_overrides.get(service);
        let given = given.or_else(|| options.endpoint_overrides.get(official_type(service)));
        let project = token.and_then(|t| t.info.project.as_ref()).map(|p| p.id.as_str());
        let base = match (given, &self.inner.credentials, token) {
            (Some(url), ..) => url.clone(),
            (None, Credentials::None { endpoint }, _) => parse(service, endpoint)?,
            (None, _, Some(token)) => {
                match token.info.catalog.endpoint(service, options.interface_of(service), region) {
                    Some(url) => parse(service, url)?,
                    // An unscoped token has no catalog, but Keystone is still reachable.
                    None if service == "identity" => options.auth_url.clone(),
                    None => return Err(self.no_endpoint(service, region)),
                }
            }
            (None, _, None) => return Err(self.no_endpoint(service, region)),
        };
        catalog::join(&base, service, path, project).ok_or_else(|| invalid(service, "its URL cannot be a base"))
    }

    fn no_endpoint(&self, service: &str, region: Option<&str>) -> CloudError {
        let interface = match self.options().interface_of(service) {
            Interface::Public => "public",
            Interface::Internal => "internal",
            Interface::Admin => "admin",
        };
        CloudError::NoEndpoint { service: service.to_owned(), interface, region: region.map(str::to_owned) }
    }

    /// Sends a request with the token of the session, and once more with a new token if the service rejects it (401). A
    /// status of 400 or more is a [`CloudError::Status`]. A successful response that cannot be read is a
    /// [`CloudError::Malformed`], because the operation may have been executed.
    pub async fn call(&self, request: &CloudRequest) -> Result<CloudResponse, CloudError> {
        let response = self.send(request).await?;
        let body = read_body(request, &response)?;
        let headers = response.headers.iter();
        let headers: Map = headers
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), Value::from(value.to_str().ok()?))))
            .collect();
        Ok(CloudResponse { status: response.status.as_u16(), headers, body })
    }

    async fn send(&self, request: &CloudRequest) -> Result<HttpResponse, CloudError> {
        let service = request.service.as_str();
        let without_keystone = matches!(self.inner.credentials, Credentials::None { .. });
        let mut first = true;
        loop {
            let token = if without_keystone { None } else { Some(self.token().await?) };
            let http = self.prepare(request, token.as_deref())?;
            let safe = matches!(request.method, Method::Get | Method::Head);
            let (region, gate) = (request.region.as_deref(), request.gate.as_deref());
            let target = Target { service, region, gate };
            let response = self.inner.exchange.send(target, http, safe, &self.retry).await?;
            if let (401, true, Some(token)) = (response.status.as_u16(), first, &token) {
                first = false;
                if self.forget(token) {
                    continue;
                }
            }
            return accepted(service, response);
        }
    }

    fn prepare(&self, request: &CloudRequest, token: Option<&Token>) -> Result<HttpRequest, CloudError> {
        let service = request.service.as_str();
        let mut url = self.url(service, &request.path, request.region.as_deref(), token)?;
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        let mut headers = json_headers();
        if let Some(token) = token {
            headers.insert("x-auth-token", secret_header(&token.secret)?);
        }
        let body = request.body.as_ref().map(|body| body_bytes(request, body)).transpose()?;
        if let Some(body) = &body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            if body.is_empty() {
                // Swift requires the length of an object that is empty too, and the HTTP client omits it.
                headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
        }
        if official_type(service) == "message" {
            // Zaqar requires an ID of the client, with which it omits the client's own messages; Kiln posts none.
            headers.insert("client-id", HeaderValue::from_static("7d2c1f0a-54a1-4c5e-9d0b-6f3a8a1e2b90"));
        }
        for (name, value) in &request.headers {
            let name = HeaderName::try_from(name).map_err(|e| invalid(service, e))?;
            headers.insert(name, HeaderValue::try_from(value).map_err(|e| invalid(service, e))?);
        }
        if let Some(version) = &request.microversion {
            for (name, value) in microversion_headers(service, version) {
                headers.insert(name, HeaderValue::try_from(value).map_err(|e| invalid(service, e))?);
            }
        }
        let method = match request.method {
            Method::Get => HttpMethod::GET,
            Method::Post => HttpMethod::POST,
            Method::Put => HttpMethod::PUT,
            Method::Patch => HttpMethod::PATCH,
            Method::Delete => HttpMethod::DELETE,
            Method::Head => HttpMethod::HEAD,
        };
        Ok(HttpRequest { method, url, headers, body, timeout: self.options().timeout })
    }
}

/// The headers that select a microversion: one name for all services, and older names where they are still used.
fn microversion_headers(service: &str, version: &str) -> Vec<(HeaderName, String)> {
    let general = HeaderName::from_static("openstack-api-version");
    match official_type(service) {
        "block-storage" => vec![(general, format!("volume {version}"))],
        "shared-file-system" => {
            vec![(HeaderName::from_static("x-openstack-manila-api-version"), version.to_owned())]
        }
        "baremetal" => vec![(HeaderName::from_static("x-openstack-ironic-api-version"), version.to_owned())],
        official => vec![(general, format!("{official} {version}"))],
    }
}

fn json_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers
}

fn secret_header(secret: &Secret<String>) -> Result<HeaderValue, CloudError> {
    let mut value = HeaderValue::try_from(secret.expose()).map_err(|e| invalid("identity", e))?;
    value.set_sensitive(true);
    Ok(value)
}

fn json_bytes(body: &Value) -> Result<Bytes, CloudError> {
    serde_json::to_vec(body).map(Bytes::from).map_err(|e| invalid("request", e))
}

/// The body of a request: JSON, or a text that is sent as it is if the request has another content type.
fn body_bytes(request: &CloudRequest, body: &Value) -> Result<Bytes, CloudError> {
    let is_type = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("content-type");
    match (request.headers.iter().find(is_type), body) {
        (Some((_, kind)), Value::Str(text)) if !kind.contains("json") => Ok(Bytes::copy_from_slice(text.as_bytes())),
        _ => json_bytes(body),
    }
}

/// A new token in a response.
fn issued(response: &HttpResponse) -> Result<Token, CloudError> {
    let secret = response.header("x-subject-token").map(|t| Secret::new(t.to_owned()));
    let secret = secret.ok_or_else(|| malformed("identity", "no X-Subject-Token"))?;
    Ok(Token::new(secret, token_info(response)?))
}

fn token_info(response: &HttpResponse) -> Result<TokenInfo, CloudError> {
    let envelope: TokenEnvelope = serde_json::from_slice(&response.body).map_err(|e| malformed("identity", e))?;
    Ok(envelope.token)
}

fn accepted(service: &str, response: HttpResponse) -> Result<HttpResponse, CloudError> {
    if response.status.is_client_error() || response.status.is_server_error() {
        return Err(CloudError::Status { service: service.to_owned(), response: Box::new(response) });
    }
    Ok(response)
}

fn parse(service: &str, url: &str) -> Result<Url, CloudError> {
    Url::parse(url).map_err(|e| invalid(service, e))
}

/// Reads the body of a successful response. A read must return JSON, unless the request accepts something else: then it
/// is returned as text. Other requests may return text or nothing, unless the content type is JSON.
fn read_body(request: &CloudRequest, response: &HttpResponse) -> Result<Value, CloudError> {
    let is_accept = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("accept");
    if request.headers.iter().find(is_accept).is_some_and(|(_, kind)| !kind.contains("json")) {
        return Ok(String::from_utf8_lossy(&response.body).into_owned().into());
    }
    let is_read = request.method == Method::Get && response.status == StatusCode::OK;
    let is_json = response.header("content-type").is_some_and(|kind| kind.contains("json"));
    match serde_json::from_slice(&response.body) {
        Ok(body) => Ok(body),
        Err(error) if is_read || (is_json && !response.body.is_empty()) => {
            Err(malformed(&request.service, format!("{} with a response that is not JSON: {error}", response.status)))
        }
        Err(_) => Ok(Value::Null),
    }
}

/// A request that cannot be sent.
fn invalid(service: &str, message: impl std::fmt::Display) -> CloudError {
    CloudError::Invalid { service: service.to_owned(), message: message.to_string() }
}

/// A response that cannot be read.
fn malformed(service: &str, message: impl std::fmt::Display) -> CloudError {
    CloudError::Malformed { service: service.to_owned(), message: message.to_string() }
}
