//! Both APIs, to compare what clients see of a stack: that of a running Heat, and that of a Kiln with the stack in memory.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use axum::{Router, http::Request};
use http::header::{HOST, HeaderMap, HeaderValue};
use kiln_api::{Api, Parts};
use kiln_cloud::{HttpRequest, Transport};
use kiln_config::Config;
use kiln_config::options::kiln;
use kiln_identity::{Identity, Policy};
use kiln_service::{Service, SharedCredentials};
use kiln_stack::Backends;
use kiln_take_over::{BothViews, ClientView};
use kiln_value::{Secret, Value};
use tower::ServiceExt as _;
use url::{Position, Url};

use crate::runtime::{api_options, service_options};
use crate::{clients, heat_behind};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// The largest answer, in bytes.
const LARGEST: usize = 64 << 20;

/// Both APIs; `None` if the configuration names no Heat.
pub(crate) fn both(config: &Config, identity: &Arc<dyn Identity>, policy: &Arc<Policy>) -> Result<Option<BothViews>> {
    let Some(url) = heat_behind::url(config, &kiln::HEAT_API_URL)? else { return Ok(None) };
    let transport = clients::transport(config, &config.account("keystone_authtoken")?)?;
    let (api, service) = (api_options(config)?, service_options(config)?);
    let (identity, policy) = (Arc::clone(identity), Arc::clone(policy));
    // The links of both have the same host.
    let host = url[Position::BeforeHost..Position::AfterPort].to_owned();
    let kiln = move |backends: &Backends| -> Arc<dyn ClientView> {
        let service = Service {
            options: service.clone(),
            backends: backends.clone(),
            recent: Arc::default(),
            identity: Arc::clone(&identity),
            policy: Arc::clone(&policy),
            templates: None,
            shared: SharedCredentials::default(),
            heat_projects: Arc::default(),
        };
        let router = Api::new(Parts { options: api.clone(), service }).router();
        Arc::new(OfKiln { router, host: host.clone() })
    };
    Ok(Some(BothViews { heat: Arc::new(OfHeat { url, transport }), kiln: Arc::new(kiln) }))
}

fn headers(token: &Secret<String>) -> Result<HeaderMap, String> {
    let mut token = HeaderValue::try_from(token.expose()).map_err(|error| error.to_string())?;
    token.set_sensitive(true);
    Ok(HeaderMap::from_iter([(http::HeaderName::from_static("x-auth-token"), token)]))
}

fn json(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|_| "the answer is no JSON".to_owned())
}

struct OfHeat {
    url: Url,
    transport: Arc<dyn Transport>,
}

#[async_trait]
impl ClientView for OfHeat {
    async fn get(&self, path: &str, token: &Secret<String>) -> Result<(u16, Value), String> {
        let mut url = self.url.clone();
        url.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
        let (method, headers) = (http::Method::GET, headers(token)?);
        let request = HttpRequest { method, url, headers, body: None, timeout: PATIENCE };
        let answer = self.transport.send(request).await.map_err(|error| error.to_string())?;
        Ok((answer.status.as_u16(), json(&answer.body)?))
    }
}

struct OfKiln {
    router: Router,
    host: String,
}

#[async_trait]
impl ClientView for OfKiln {
    async fn get(&self, path: &str, token: &Secret<String>) -> Result<(u16, Value), String> {
        let mut request = Request::get(path).body(Body::empty()).map_err(|error| error.to_string())?;
        *request.headers_mut() = headers(token)?;
        request.headers_mut().insert(HOST, HeaderValue::try_from(&self.host).map_err(|error| error.to_string())?);
        let answer = match self.router.clone().oneshot(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        let status = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), LARGEST).await.map_err(|error| error.to_string())?;
        Ok((status, json(&body)?))
    }
}
