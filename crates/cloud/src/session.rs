//! A session: credentials that become tokens, and requests that carry them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method as HttpMethod};
use kiln_resource::{CloudRequest, CloudResponse, Method};
use kiln_value::{Map, Secret, Value};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;
use url::Url;

use crate::catalog::{self, Catalog, Interface, official_type};
use crate::credentials::{Credentials, Scope};
use crate::error::CloudError;
use crate::retry::RetryPolicy;
use crate::token::{Token, TokenEnvelope, TokenInfo};
use crate::transport::{HttpRequest, HttpResponse, Transport};

/// How sessions behave.
#[derive(Clone, Debug)]
pub struct Options {
    /// Keystone: with or without `/v3`.
    pub auth_url: Url,
    /// Region of the endpoints to use; any if there is none.
    pub region: Option<String>,
    /// Interface of the endpoints to use.
    pub interface: Interface,
    /// Endpoints that count instead of the catalog's, by service type.
    pub endpoint_overrides: HashMap<String, Url>,
    /// The longest time that one exchange may take.
    pub timeout: Duration,
    /// Repetition.
    pub retry: RetryPolicy,
    /// How many requests may be under way to one service at a time, over all sessions.
    pub concurrency: usize,
    /// How long the answer of a finder or the list of extensions is remembered.
    pub finder_ttl: Duration,
    /// Seed of the chance that spreads retries.
    pub seed: u64,
}

impl Options {
    /// The usual behaviour with a Keystone.
    pub fn new(auth_url: Url) -> Self {
        Self {
            auth_url,
            region: None,
            interface: Interface::Public,
            endpoint_overrides: HashMap::new(),
            timeout: Duration::from_mins(1),
            retry: RetryPolicy::default(),
            concurrency: 64,
            finder_ttl: Duration::from_mins(1),
            seed: 0,
        }
    }
}

/// What all sessions of one cloud share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    transport: Arc<dyn Transport>,
    lanes: StdMutex<HashMap<String, Arc<Semaphore>>>,
    chance: StdMutex<SmallRng>,
    catalogs: StdMutex<VecDeque<Catalog>>,
}

/// How many different catalogs are kept to be shared: they differ by project.
const CATALOGS: usize = 64;

impl Shared {
    pub(crate) fn new(transport: Arc<dyn Transport>, options: Options) -> Self {
        let chance = SmallRng::seed_from_u64(options.seed);
        Self {
            options,
            transport,
            lanes: StdMutex::default(),
            chance: StdMutex::new(chance),
            catalogs: StdMutex::default(),
        }
    }

    fn lane(&self, service: &str) -> Arc<Semaphore> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let width = self.options.concurrency.max(1);
        lanes.entry(service.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(width))).clone()
    }

    /// The same catalog, in the place where others have it, too: a thousand tokens would hold a thousand copies.
    fn shared_catalog(&self, catalog: Catalog) -> Catalog {
        let mut known = self.catalogs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|other| **other == catalog) {
            return same.clone();
        }
        if known.len() >= CATALOGS {
            known.pop_front();
        }
        known.push_back(catalog.clone());
        catalog
    }

    fn chance(&self) -> f64 {
        self.chance.lock().unwrap_or_else(PoisonError::into_inner).random()
    }

    /// Sends with repetition and within the service's lane. `safe`: it does no harm to send it twice.
    async fn send(&self, service: &str, request: HttpRequest, safe: bool) -> Result<HttpResponse, CloudError> {
        let lane = self.lane(official_type(service));
        let mut attempt = 0;
        loop {
            let outcome = {
                // The semaphore is never closed: an error cannot be, and would only mean no limit.
                let _permit = lane.acquire().await.ok();
                self.transport.send(request.clone()).await
            };
            if let Some(wait) = self.options.retry.wait(safe, outcome.as_ref(), attempt, self.chance()) {
                tracing::debug!(service, attempt, wait_ms = wait.as_millis(), "request is repeated");
                tokio::time::sleep(wait).await;
                attempt += 1;
                continue;
            }
            return outcome.map_err(|error| {
                let mut url = request.url.clone();
                url.set_query(None);
                CloudError::Transport { service: service.to_owned(), url: url.into(), error }
            });
        }
    }
}

struct Current {
    token: Arc<Token>,
    /// From then on another is asked for. By the monotonic clock and the token's own length, so that clocks may differ.
    renew_at: Instant,
}

/// Credentials at work: gets tokens, renews them, finds endpoints and sends requests. Cheap to clone.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    credentials: Credentials,
    current: Mutex<Option<Current>>,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, credentials: Credentials) -> Self {
        Self { inner: Arc::new(Inner { shared, credentials, current: Mutex::new(None) }) }
    }

    pub(crate) fn options(&self) -> &Options {
        &self.inner.shared.options
    }

    /// The credentials.
    pub fn credentials(&self) -> &Credentials {
        &self.inner.credentials
    }

    /// The token, renewed if it ends soon. Without Keystone ([`Credentials::None`]) an error of the identity service.
    pub async fn token(&self) -> Result<Arc<Token>, CloudError> {
        let mut current = self.inner.current.lock().await;
        if let Some(known) = current.as_ref().filter(|c| Instant::now() < c.renew_at) {
            return Ok(known.token.clone());
        }
        let mut token = self.authenticate().await?;
        token.info.catalog = self.inner.shared.shared_catalog(std::mem::take(&mut token.info.catalog));
        let token = Arc::new(token);
        let life = token.info.expires_at.duration_since(token.info.issued_at);
        let life = Duration::try_from(life).unwrap_or_default();
        // A tenth of its life, at most five minutes, is left for requests under way.
        let margin = (life / 10).min(Duration::from_mins(5));
        let renew_at = Instant::now() + life.saturating_sub(margin);
        *current = Some(Current { token: token.clone(), renew_at });
        Ok(token)
    }

    /// Forgets a token that a service refused, unless another is there already. Whether a new one can be got.
    async fn forget(&self, refused: &Token) -> bool {
        if self.inner.credentials.auth_request().is_none() {
            return false;
        }
        let mut current = self.inner.current.lock().await;
        if current.as_ref().is_some_and(|c| c.token.secret == refused.secret) {
            *current = None;
        }
        true
    }

    async fn authenticate(&self) -> Result<Token, CloudError> {
        match (&self.inner.credentials, self.inner.credentials.auth_request()) {
            (_, Some(body)) => self.issue(&body).await,
            (Credentials::Token { token, scope: Scope::Unscoped }, None) => {
                Ok(Token { secret: token.clone(), info: self.validate(token, token).await? })
            }
            _ => Err(CloudError::NoEndpoint {
                service: "identity".into(),
                interface: "public",
                region: self.options().region.clone(),
            }),
        }
    }

    async fn issue(&self, body: &Value) -> Result<Token, CloudError> {
        let mut headers = json_headers();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = Some(json_bytes(body)?);
        let response = self.keystone(HttpMethod::POST, headers, body).await?;
        let secret = response.header("x-subject-token").map(|t| Secret::new(t.to_owned()));
        let secret = secret.ok_or_else(|| malformed("identity", "no X-Subject-Token"))?;
        Ok(Token { secret, info: token_info(&response)? })
    }

    /// Asks Keystone of a token, with a token.
    pub(crate) async fn validate(
        &self,
        own: &Secret<String>,
        subject: &Secret<String>,
    ) -> Result<TokenInfo, CloudError> {
        let mut headers = json_headers();
        headers.insert("x-auth-token", secret_header(own)?);
        headers.insert("x-subject-token", secret_header(subject)?);
        token_info(&self.keystone(HttpMethod::GET, headers, None).await?)
    }

    async fn keystone(
        &self,
        method: HttpMethod,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<HttpResponse, CloudError> {
        let url = catalog::join(&self.options().auth_url, "identity", "/v3/auth/tokens", None)
            .ok_or_else(|| malformed("identity", "auth_url cannot be a base"))?;
        let request = HttpRequest { method, url, headers, body, timeout: self.options().timeout };
        // A token that nobody received harms nobody: asking for another is as safe as a read.
        accepted("identity", self.inner.shared.send("identity", request, true).await?)
    }

    /// The URL of a path of a service.
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
                match token.info.catalog.endpoint(service, options.interface, region) {
                    Some(url) => parse(service, url)?,
                    // An unscoped token has no catalog, but Keystone can still be asked.
                    None if service == "identity" => options.auth_url.clone(),
                    None => return Err(self.no_endpoint(service, region)),
                }
            }
            (None, _, None) => return Err(self.no_endpoint(service, region)),
        };
        catalog::join(&base, service, path, project).ok_or_else(|| malformed(service, "its URL cannot be a base"))
    }

    fn no_endpoint(&self, service: &str, region: Option<&str>) -> CloudError {
        let interface = match self.options().interface {
            Interface::Public => "public",
            Interface::Internal => "internal",
            Interface::Admin => "admin",
        };
        CloudError::NoEndpoint { service: service.to_owned(), interface, region: region.map(str::to_owned) }
    }

    /// Sends a request with the session's token, once more with a fresh one if the service refuses that (401).
    /// An answer of 400 or more is [`CloudError::Status`].
    pub async fn call(&self, request: &CloudRequest) -> Result<CloudResponse, CloudError> {
        let response = self.send(request).await?;
        let headers = response.headers.iter();
        let headers: Map = headers
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), Value::from(value.to_str().ok()?))))
            .collect();
        // Some services answer 202 and the like with a text: that is no value to anyone.
        let body = serde_json::from_slice(&response.body).unwrap_or_default();
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
            let response = self.inner.shared.send(service, http, safe).await?;
            if let (401, true, Some(token)) = (response.status.as_u16(), first, &token) {
                first = false;
                if self.forget(token).await {
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
        let body = request.body.as_ref().map(json_bytes).transpose()?;
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in &request.headers {
            let name = HeaderName::try_from(name).map_err(|e| malformed(service, e))?;
            headers.insert(name, HeaderValue::try_from(value).map_err(|e| malformed(service, e))?);
        }
        if let Some(version) = &request.microversion {
            for (name, value) in microversion_headers(service, version) {
                headers.insert(name, HeaderValue::try_from(value).map_err(|e| malformed(service, e))?);
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

/// The header that asks for a microversion: one name for all services, with older names where they still count.
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
    let mut value = HeaderValue::try_from(secret.expose()).map_err(|e| malformed("identity", e))?;
    value.set_sensitive(true);
    Ok(value)
}

fn json_bytes(body: &Value) -> Result<Bytes, CloudError> {
    serde_json::to_vec(body).map(Bytes::from).map_err(|e| malformed("request", e))
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
    Url::parse(url).map_err(|e| malformed(service, e))
}

fn malformed(service: &str, message: impl std::fmt::Display) -> CloudError {
    CloudError::Malformed { service: service.to_owned(), message: message.to_string() }
}
