//! The API service and the processing of requests.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, HeaderValue, WWW_AUTHENTICATE};
use http::request::Parts as Head;
use http::{Method, Request, StatusCode};
use kiln_audit::Attachment;
use kiln_identity::{Caller, Denied};
use kiln_service::Service;
use kiln_value::{steps, value};
use kiln_web::{Audit, Heat, Listeners, Negotiated, Query, Reason, ServeError, Track, Waited};
use percent_encoding::percent_decode_str;
use tokio::sync::watch;
use tracing::Instrument as _;

use crate::call::Call;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::http::route::{self, Match, PathParams};
use crate::http::watchers::Watchers;
use crate::http::{body, page, reply};
use crate::keyed::{self, Begun};
use crate::link::Links;
use crate::openapi;
use crate::options::Options;
use crate::passing::{self, Passing};

/// The parts of the API.
pub struct Parts {
    /// Options.
    pub options: Options,
    /// The use cases.
    pub service: Service,
}

/// The REST API. Cheap to clone.
#[derive(Clone)]
pub struct Api {
    parts: Arc<Parts>,
    watchers: Arc<Watchers>,
    stopping: Arc<watch::Sender<bool>>,
    beside: Router,
}

/// What is known of a request while it is processed, for the log.
#[derive(Default)]
struct Known {
    route: Option<&'static str>,
    /// `None`: there is no audit, or the request is not one of the API.
    audit: Option<Audit>,
}

impl Api {
    /// Builds the API from its parts.
    pub fn new(parts: Parts) -> Self {
        let watchers = Arc::new(Watchers::new(&parts.options.connections));
        Self { parts: Arc::new(parts), watchers, stopping: Arc::new(watch::Sender::new(false)), beside: Router::new() }
    }

    /// Serves other routes on the same listeners.
    #[must_use]
    pub fn with_beside(mut self, routes: Router) -> Self {
        self.beside = routes;
        self
    }

    /// The router of the API, to be called directly.
    pub fn router(&self) -> Router {
        let api = self.clone();
        Router::new().fallback(move |request: Request<Body>| {
            let api = api.clone();
            async move { api.answer(request).await }
        })
    }

    /// Serves until `shutdown`, then completes the running requests.
    pub async fn serve(
        self,
        listeners: impl Into<Listeners>,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        let limits = self.parts.options.connections.clone();
        let router = self.router().merge(self.beside);
        let stopping = self.stopping;
        let shutdown = async move {
            shutdown.await;
            // Those who wait for events are not worth waiting for.
            stopping.send_replace(true);
        };
        kiln_web::serve(listeners, router, limits, shutdown).await
    }

    async fn answer(&self, request: Request<Body>) -> Response {
        let backends = &self.parts.service.backends;
        let heat_projects = || self.parts.service.heat_projects.count();
        if let Some(response) = kiln_web::probe(request.uri().path(), backends, heat_projects).await {
            return response;
        }
        if request.uri().path() == openapi::PATH {
            return reply::json_bytes(StatusCode::OK, openapi::json().into());
        }
        let (head, body) = request.into_parts();
        let client = self.parts.options.proxies.client(&head);
        let track = Track::begin(backends, &head, client);
        let cors = &self.parts.options.cors;
        if let Some(response) = cors.preflight(&head) {
            return response;
        }
        let mut known = Known::default();
        let mut response = steps::metered(
            self.parts.service.options.limits.request_steps,
            self.negotiate(&head, body, &mut known, (&track.id, client)),
        )
        .instrument(track.span())
        .await;
        if let Some(audit) = known.audit.take() {
            let stack = kiln_web::stack_of(&head, &response);
            let stack = stack.map(|content| Attachment { name: "stack", content });
            audit.end(backends, &head, &response, stack.into_iter().collect());
        }
        cors.apply(&head, &mut response);
        track.at("rest", known.route).end(backends, &head, &mut response);
        response
    }

    async fn negotiate(
        &self,
        head: &Head,
        body: Body,
        known: &mut Known,
        (id, client): (&str, Option<IpAddr>),
    ) -> Response {
        let Ok(path) = percent_decode_str(head.uri.path()).decode_utf8() else {
            return page::not_found(&head.headers);
        };
        match kiln_web::negotiate(&path, &head.headers) {
            Negotiated::List => kiln_web::versions(&self.address(head)),
            Negotiated::Nothing => page::not_found(&head.headers),
            Negotiated::V1(path) => {
                let (options, backends) = (&self.parts.options, &self.parts.service.backends);
                let found = route::find(&head.method, path);
                let is_of_guests = matches!(&found, Match::Found(endpoint, _) if endpoint.is_of_guests());
                if !is_of_guests && let Err(too_many) = options.admission.of_address(backends, client) {
                    return ApiError::too_many(too_many);
                }
                let address = self.address(head);
                let body = if let Some(heat) = &options.heat {
                    match passing::pass_on(heat, options, (head, path), body, (client, &address, is_of_guests)).await {
                        Passing::OfKiln(body) => body,
                        Passing::Answered(response) => {
                            known.route = Some(Heat::ROUTE);
                            return response;
                        }
                    }
                } else {
                    body
                };
                let audit = |auditor| Audit::new(auditor, id, address, client);
                known.audit = options.auditor.clone().map(audit);
                let caller = match self.parts.service.identity.authenticate(&head.headers).await {
                    Ok(caller) => caller,
                    Err(denied) => return refuse(&denied),
                };
                if let Some(audit) = &mut known.audit
                    && audit.begin(backends, head, Some(&caller)).is_err()
                {
                    return ApiError::unaudited().into_response();
                }
                self.v1(head, body, (found, id), caller, known).await
            }
        }
    }

    /// Handles a request to version 1, whose caller is known. Stores its route in `known`, for the log.
    async fn v1(
        &self,
        head: &Head,
        body: Body,
        (found, id): (Match, &str),
        caller: Arc<Caller>,
        known: &mut Known,
    ) -> Response {
        kiln_web::known(&caller);
        if self.parts.options.heat.is_none() && self.parts.service.heat_projects.has(&caller.project_id) {
            return ApiError::of_heat().into_response();
        }
        let (endpoint, params) = match found {
            Match::Found(endpoint, params) => (endpoint, params),
            Match::Method(methods) if head.method == Method::OPTIONS => {
                return allowing(reply::empty(StatusCode::NO_CONTENT), &methods);
            }
            Match::Method(methods) => return allowing(ApiError::method_not_allowed().into_response(), &methods),
            Match::None => return page::not_found(&head.headers),
        };
        known.route = Some(endpoint.path);
        let admission = &self.parts.options.admission;
        if endpoint.is_change()
            && let Some(text) = admission.maintenance.text()
        {
            return ApiError::maintenance(text).into_response();
        }
        if !endpoint.is_of_guests()
            && let Err(too_many) = admission.of_project(&self.parts.service.backends, &caller.project_id)
        {
            return ApiError::too_many(too_many);
        }
        let project = caller.project_id.clone();
        let work = self.act(head, body, caller, (endpoint, params), id);
        self.parts.service.backends.caches.threads.within(&project, work).await
    }

    /// Reads the body of a request and does what it asks for.
    async fn act(
        &self,
        head: &Head,
        body: Body,
        caller: Arc<Caller>,
        (endpoint, params): (&'static Endpoint, PathParams),
        request_id: &str,
    ) -> Response {
        let options = &self.parts.options;
        let read =
            body::read(head, body, options.max_body, endpoint.takes_template().then_some(&options.topology_types));
        let body = match tokio::time::timeout(options.connections.body, read).await {
            Ok(Ok(body)) => body,
            Ok(Err(error)) => return error.into_response(),
            Err(_) => return ApiError::too_slow().into_response(),
        };
        let address = self.address(head);
        let root = self.parts.options.root.clone().unwrap_or_else(|| format!("{address}/v1"));
        let call = Call {
            api: Arc::clone(&self.parts),
            caller,
            request_id: request_id.to_owned(),
            params,
            query: Query::parse(head.uri.query()),
            body,
            headers: head.headers.clone(),
            url: format!("{address}{}", head.uri.path()),
            path_and_query: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
            links: Links::new(root),
            watchers: Arc::clone(&self.watchers),
            stopping: self.stopping.subscribe(),
        };
        let repeatable = match keyed::begin(&call, &head.method, endpoint).await {
            Ok(Begun::Run(repeatable)) => repeatable,
            Ok(Begun::Answered(response)) => return response,
            Err(error) => return error.into_response(),
        };
        let response = endpoint.run(&call).await.unwrap_or_else(IntoResponse::into_response);
        let mut response = match repeatable {
            Some(repeatable) => keyed::end(repeatable, response).await,
            None => response,
        };
        if call.query.get("wait").is_some() {
            response.extensions_mut().insert(Waited);
        }
        response
    }

    /// The address that the client used: `http://host:8004`.
    fn address(&self, head: &Head) -> String {
        kiln_web::address(head, self.parts.options.proxies.headers)
    }
}

/// The responses of keystonemiddleware.
fn refuse(denied: &Denied) -> Response {
    let status = match denied {
        Denied::Unauthorized { .. } => StatusCode::UNAUTHORIZED,
        Denied::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    let message = match denied {
        Denied::Unauthorized { .. } => denied.to_string(),
        // The details are only logged.
        Denied::Unavailable(_) => "The Keystone service is temporarily unavailable.".to_owned(),
    };
    let error = value!({ "code": (status.as_u16()), "title": (crate::error::title(status)), "message": (&message) });
    let mut response = reply::json_with(status, &value!({ "error": error }));
    response.extensions_mut().insert(Reason(message));
    if let Denied::Unauthorized { challenge } = denied
        && let Ok(challenge) = HeaderValue::from_str(challenge)
    {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// A response with the methods of its path.
fn allowing(mut response: Response, methods: &[Method]) -> Response {
    let names: Vec<_> = methods.iter().map(Method::as_str).collect();
    if let Ok(allow) = HeaderValue::from_str(&names.join(",")) {
        response.headers_mut().insert(ALLOW, allow);
    }
    response
}
