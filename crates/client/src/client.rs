//! The HTTP client.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use kiln_cloud::{HttpRequest, HttpResponse, Transport};
use kiln_value::{Value, url::quote};
use url::Url;

use crate::{Access, Error, Refusal};

/// Timeout of a call.
const TIMEOUT: Duration = Duration::from_mins(10);
/// Timeout of a health check.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of redirects: a name redirects to the canonical URL of the stack, more than a few are a loop.
const REDIRECTS: usize = 4;

/// The number of items after which Kiln's own lists have another page.
const LONGEST_PAGE: u64 = 1_000;

/// A client of the orchestration service (REST v1). Cheap to clone.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    access: Arc<dyn Access>,
}

/// Query parameters in order, not yet encoded.
pub type Query = Vec<(String, String)>;

impl Client {
    /// A client that sends requests with `transport` and gets endpoint and token from `access`.
    pub fn new(transport: Arc<dyn Transport>, access: Arc<dyn Access>) -> Self {
        Self { transport, access }
    }

    /// The endpoint of the service.
    pub async fn endpoint(&self) -> Result<Url, Error> {
        self.access.endpoint().await
    }

    /// The health of the service: one line each for database and engine. `None` if the service does not support it,
    /// like Heat.
    pub async fn health(&self) -> Option<String> {
        let mut url = self.access.endpoint().await.ok()?;
        let path = url.path().to_owned();
        let (root, _) = path.split_once("/v1")?;
        url.set_path(&format!("{root}/healthcheck"));
        url.set_query(None);
        let request =
            HttpRequest { method: Method::GET, url, headers: HeaderMap::new(), body: None, timeout: HEALTH_TIMEOUT };
        let response = self.transport.send(request).await.ok()?;
        let text = std::str::from_utf8(&response.body).ok()?;
        text.starts_with("database: ").then(|| text.to_owned())
    }

    /// Gets the JSON at a path below the endpoint; segments must be encoded ([`segment`], [`stack_path`]).
    pub async fn get(&self, path: &str, query: &Query) -> Result<Value, Error> {
        self.call(Method::GET, path, query, None).await
    }

    /// The items of a list that only Kiln has, in pages up to `limit`; they are behind the one with the ID `marker`.
    pub(crate) async fn pages(
        &self,
        path: &str,
        key: &str,
        filter: Query,
        limit: Option<u64>,
        mut marker: Option<String>,
    ) -> Result<Vec<Value>, Error> {
        let mut items: Vec<Value> = Vec::new();
        loop {
            let left = limit.map(|limit| limit.saturating_sub(items.len() as u64));
            let mut query = filter.clone();
            query.extend(left.map(|left| ("limit".to_owned(), left.to_string())));
            query.extend(marker.take().map(|marker| ("marker".to_owned(), marker)));
            let page = unwrap_list(self.get(path, &query).await?, key)?;
            let count = page.len() as u64;
            items.extend(page);
            marker =
                items.last().and_then(|last| last.str_at("id").or_else(|| last.str_at("stack_id"))).map(str::to_owned);
            if count < LONGEST_PAGE || left == Some(count) || marker.is_none() {
                return Ok(items);
            }
        }
    }

    /// Sends a request and returns the JSON of the response, null if there is none.
    pub async fn call(&self, method: Method, path: &str, query: &Query, body: Option<&Value>) -> Result<Value, Error> {
        read(&self.exchange(method, path, query, body).await?)
    }

    /// Gets the JSON at a path, with a header of the response.
    pub(crate) async fn get_with(
        &self,
        path: &str,
        query: &Query,
        header: &str,
    ) -> Result<(Value, Option<String>), Error> {
        let response = self.exchange(Method::GET, path, query, None).await?;
        Ok((read(&response)?, response.header(header).map(str::to_owned)))
    }

    /// Sends a request, with a new token if the first one is refused.
    pub(crate) async fn exchange(
        &self,
        method: Method,
        path: &str,
        query: &Query,
        body: Option<&Value>,
    ) -> Result<HttpResponse, Error> {
        let url = self.url(path, query).await?;
        let mut response = self.send(&method, url.clone(), body, false).await?;
        if response.status == StatusCode::UNAUTHORIZED && self.access.token(true).await?.is_some() {
            response = self.send(&method, url.clone(), body, false).await?;
        }
        Ok(response)
    }

    async fn url(&self, path: &str, query: &Query) -> Result<Url, Error> {
        let mut url = self.access.endpoint().await?;
        let base = url.path().trim_end_matches('/').to_owned();
        // Set without changes: `path` is already encoded.
        url.set_path(&format!("{base}{path}"));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    async fn send(&self, method: &Method, url: Url, body: Option<&Value>, renew: bool) -> Result<HttpResponse, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(token) = self.access.token(renew).await? {
            headers.insert(HeaderName::from_static("x-auth-token"), secret("token", token.expose())?);
        }
        if let Some((user, password)) = self.access.login() {
            headers.insert(HeaderName::from_static("x-auth-user"), secret("user name", user)?);
            headers.insert(HeaderName::from_static("x-auth-key"), secret("password", password.expose())?);
        }
        let body = match body {
            None => None,
            Some(value) => {
                headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                let json = serde_json::to_vec(value).map_err(|error| Error::Answer(error.to_string()))?;
                Some(Bytes::from(json))
            }
        };
        let origin = url.origin();
        let mut request = HttpRequest { method: method.clone(), url, headers, body, timeout: TIMEOUT };
        for _ in 0..=REDIRECTS {
            let endpoint = request.url.clone();
            let response = self.transport.send(request.clone()).await;
            let response = response.map_err(|source| Error::Unreachable { endpoint: endpoint.to_string(), source })?;
            let redirect = matches!(response.status.as_u16(), 301 | 302 | 305 | 307 | 308);
            let Some(location) = response.header("location").filter(|_| redirect) else {
                return Ok(response);
            };
            let mut target = endpoint.join(location).map_err(|_| bad_redirect(location))?;
            // The service redirects to another of its URLs without the query.
            if target.query().is_none() {
                target.set_query(endpoint.query());
            }
            if target.origin() != origin {
                return Err(bad_redirect(location));
            }
            request.url = target;
        }
        Err(Error::Answer("The service redirects in a loop".to_owned()))
    }
}

fn bad_redirect(location: &str) -> Error {
    Error::Answer(format!("The service redirects to another address: {location}"))
}

fn read(response: &HttpResponse) -> Result<Value, Error> {
    let status = response.status;
    if !status.is_success() {
        return Err(Error::Refused(Refusal::read(status.as_u16(), &response.body)));
    }
    if response.body.is_empty() {
        return Ok(Value::Null);
    }
    let json = response.header("content-type").is_some_and(|kind| kind.contains("json"));
    match serde_json::from_slice(&response.body) {
        Ok(value) => Ok(value),
        Err(_) if !json => Ok(Value::Null),
        Err(error) => Err(Error::Answer(format!("The response of the service is not JSON: {error}"))),
    }
}

/// `/stacks/<name or id>`: `name/id` remains two segments.
pub fn stack_path(stack: &str) -> String {
    format!("/stacks/{}", quote(stack, "/"))
}

/// An encoded path segment.
pub fn segment(name: &str) -> String {
    quote(name, "")
}

/// The value at the key of the envelope.
pub(crate) fn unwrap(answer: Value, key: &str) -> Result<Value, Error> {
    match answer {
        Value::Map(mut entries) => entries.shift_remove(key).ok_or_else(|| missing(key)),
        _ => Err(missing(key)),
    }
}

/// The list at the key of the envelope.
pub(crate) fn unwrap_list(answer: Value, key: &str) -> Result<Vec<Value>, Error> {
    match unwrap(answer, key)? {
        Value::List(items) => Ok(items),
        _ => Err(missing(key)),
    }
}

fn missing(key: &str) -> Error {
    Error::Answer(format!("The response of the service has no \"{key}\""))
}
/// The value of a header that logs do not show.
fn secret(what: &str, text: &str) -> Result<HeaderValue, Error> {
    let value = HeaderValue::from_str(text);
    let mut value =
        value.map_err(|_| Error::Access(format!("The {what} contains characters that are not allowed in a header")))?;
    value.set_sensitive(true);
    Ok(value)
}
