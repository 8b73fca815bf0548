//! Shared state of all sessions of one cloud: the transport and the limits of each service.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderValue;
use kiln_resource::Gate;
use kiln_trace::Origin;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::time::timeout;
use tracing::Instrument as _;
use tracing::field::Empty;

use crate::breaker::{Breaker, Change, Verdict};
use crate::catalog::{Catalog, official_type};
use crate::error::CloudError;
use crate::request_retry::{self, Budget, RetryPolicy};
use crate::service_clock::ServiceClocks;
use crate::session::Options;
use crate::transport::{HttpRequest, HttpResponse, Transport, TransportError};
use crate::width::Width;

/// The shared state of all sessions of one cloud.
pub(crate) struct Exchange {
    pub(crate) options: Options,
    transport: Arc<dyn Transport>,
    /// The transports of services that have their own, by official type.
    of_services: HashMap<String, Arc<dyn Transport>>,
    limits: Mutex<HashMap<String, Arc<ServiceLimits>>>,
    clocks: ServiceClocks,
    chance: Mutex<SmallRng>,
    catalogs: Mutex<VecDeque<Catalog>>,
}

/// The longest URL that the HTTP library sends. A longer one is the user's, and no failure of the service.
const LONGEST_URL: usize = u16::MAX as usize - 1;

/// The limits of one service: width, breaker and retry budget.
struct ServiceLimits {
    width: Width,
    breaker: Arc<Breaker>,
    budget: Budget,
}

/// Maximum number of catalogs that are cached for sharing: they differ by project.
const CATALOGS: usize = 64;

impl Exchange {
    pub(crate) fn new(
        transport: Arc<dyn Transport>,
        of_services: HashMap<String, Arc<dyn Transport>>,
        options: Options,
    ) -> Self {
        let chance = SmallRng::seed_from_u64(options.seed);
        Self {
            options,
            transport,
            of_services,
            limits: Mutex::default(),
            clocks: ServiceClocks::default(),
            chance: Mutex::new(chance),
            catalogs: Mutex::default(),
        }
    }

    /// The same cloud with the endpoints of another region.
    pub(crate) fn in_region(&self, region: &str) -> Self {
        let options = Options { region: Some(region.to_owned()), ..self.options.clone() };
        Self::new(Arc::clone(&self.transport), self.of_services.clone(), options)
    }

    /// The same cloud with another transport to one service, and limits of its own.
    pub(crate) fn with_transport(&self, service: &str, transport: Arc<dyn Transport>) -> Self {
        let mut of_services = self.of_services.clone();
        of_services.insert(official_type(service).to_owned(), transport);
        Self::new(Arc::clone(&self.transport), of_services, self.options.clone())
    }

    /// A service in a region, by one name for all its types.
    fn key(&self, service: &str, region: Option<&str>) -> String {
        let region = region.or(self.options.region.as_deref()).unwrap_or_default();
        format!("{} {region}", official_type(service))
    }

    /// The limits of a service in a region.
    fn limits(&self, service: &str, region: Option<&str>) -> Arc<ServiceLimits> {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let widest = self.options.concurrency.max(1);
        let new = || ServiceLimits { width: Width::new(widest), breaker: Arc::default(), budget: Budget::default() };
        limits.entry(self.key(service, region)).or_insert_with(|| Arc::new(new())).clone()
    }

    /// The time by the clock of a service, if it has responded recently.
    pub(crate) fn time(&self, service: &str) -> Option<i64> {
        self.clocks.time(&self.key(service, None))
    }

    fn transport_to(&self, service: &str) -> &dyn Transport {
        &**self.of_services.get(official_type(service)).unwrap_or(&self.transport)
    }

    /// Returns a shared copy of an equal catalog: otherwise a thousand tokens would hold a thousand copies.
    pub(crate) fn shared_catalog(&self, catalog: Catalog) -> Catalog {
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

    pub(crate) fn chance(&self) -> f64 {
        self.chance.lock().unwrap_or_else(PoisonError::into_inner).random()
    }

    /// Sends a request to a service, with retries according to the policy. `safe`: the request may be sent twice. Any
    /// status is a response here.
    pub(crate) async fn send(
        &self,
        target: Target<'_>,
        request: HttpRequest,
        safe: bool,
        policy: &RetryPolicy,
    ) -> Result<HttpResponse, CloudError> {
        let service = target.service;
        let length = request.url.as_str().len();
        if length > LONGEST_URL {
            let message = format!("the URL of the request has {length} characters, at most {LONGEST_URL} can be sent");
            return Err(CloudError::Invalid { service: service.to_owned(), message });
        }
        let limits = self.limits(service, target.region);
        let mut attempt = 0;
        loop {
            let outcome = self.send_once(target, &limits, &request).await?;
            let wait = policy.wait(safe, outcome.as_ref(), attempt, self.chance());
            if let Some(wait) = wait.filter(|_| limits.budget.spend()) {
                tracing::debug!(service, attempt, wait_ms = wait.as_millis(), "retrying the request");
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

    /// Sends a request once. The outer error means that it was not sent.
    async fn send_once(
        &self,
        target: Target<'_>,
        limits: &ServiceLimits,
        request: &HttpRequest,
    ) -> Result<Result<HttpResponse, TransportError>, CloudError> {
        let not_sent = |reason: &str, retry_after| CloudError::NotSent {
            service: target.service.to_owned(),
            reason: reason.to_owned(),
            retry_after,
        };
        let room = timeout(request.timeout, limits.width.enter()).await;
        let room = room.map_err(|_| not_sent("too many requests to it are in progress", None))?;
        let pass = limits.breaker.admit();
        let pass = pass.map_err(|wait| not_sent("it has not responded several times in a row", Some(wait)))?;
        if target.gate.is_some_and(|gate| !gate.is_open()) {
            return Err(not_sent("the engine's lease on the stack must be renewed first", None));
        }
        limits.budget.earn();
        let begun = tokio::time::Instant::now();
        let span = tracing::debug_span!(
            target: "kiln::trace",
            "cloud call",
            title = %format_args!("{} {}", request.method, target.service),
            kind = "client",
            peer.service = target.service,
            http.request.method = %request.method,
            server.address = request.url.host_str(),
            url.path = request.url.path(),
            http.response.status_code = Empty,
            error = Empty,
        );
        let outcome = async {
            let mut request = request.clone();
            if let Some(Origin { traceparent: Some(parent), .. }) = kiln_trace::current()
                && let Ok(parent) = HeaderValue::from_str(&parent)
            {
                request.headers.insert("traceparent", parent);
            }
            timeout(request.timeout, self.transport_to(target.service).send(request)).await
        };
        let outcome = outcome.instrument(span.clone()).await;
        let outcome = outcome.unwrap_or(Err(TransportError::Timeout));
        let status = match &outcome {
            Ok(response) => response.status.as_u16(),
            Err(error) => {
                span.record("error", tracing::field::display(error));
                0
            }
        };
        span.record("http.response.status_code", status);
        let (method, path) = (&request.method, request.url.path());
        let answer_id = outcome.as_ref().ok().and_then(request_id);
        if let Ok(response) = &outcome {
            room.responded();
            self.clocks.observe(self.key(target.service, target.region), response);
        }
        let us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let ms = us / 1000;
        let error = outcome.as_ref().err().map(tracing::field::display);
        // Without the query and the headers, which may contain secrets.
        tracing::debug!(service = target.service, %method, path, status, ms, answer_id, error, "cloud call");
        // The service comes from definitions of types, so there are few.
        tracing::trace!(target: "kiln::metric", metric = "cloud_calls", us, service = target.service, status);
        let verdict = match &outcome {
            Ok(response) if !request_retry::is_failing(response.status) => Verdict::Answered,
            Ok(response) => Verdict::Failed(request_retry::retry_after(response)),
            Err(_) => Verdict::Failed(None),
        };
        match pass.report(verdict, self.chance()) {
            Change::Opened => {
                let why = match &outcome {
                    Ok(response) => response.status.to_string(),
                    Err(error) => error.to_string(),
                };
                tracing::warn!(service = target.service, why, "a cloud service fails: calls to it are suspended");
                tracing::trace!(target: "kiln::metric", metric = "suspensions", service = target.service, open = true);
            }
            Change::Closed => {
                tracing::info!(service = target.service, "a cloud service responds again");
                tracing::trace!(target: "kiln::metric", metric = "suspensions", service = target.service, open = false);
            }
            Change::None => {}
        }
        Ok(outcome)
    }
}

/// The ID that the service gave to the request: its log has it.
fn request_id(response: &HttpResponse) -> Option<&str> {
    let names = ["x-openstack-request-id", "x-compute-request-id", "x-trans-id"];
    names.iter().find_map(|name| response.headers.get(*name)?.to_str().ok())
}

/// The target of a request: a service type, and a region if it is not the default.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) service: &'a str,
    pub(crate) region: Option<&'a str>,
    /// The gate that must be open when the request is sent.
    pub(crate) gate: Option<&'a dyn Gate>,
}
