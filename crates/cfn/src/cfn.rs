//! The API service and the processing of requests.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::request::Parts as Head;
use http::{Method, Request, StatusCode};
use kiln_audit::Attachment;
use kiln_identity::{Caller, Denied, SignatureError, SignedRequest};
use kiln_service::Service;
use kiln_value::steps;
use kiln_web::{Audit, BodyError, Heat, Listeners, Negotiated, Query, ServeError, Track};
use percent_encoding::percent_decode_str;
use tracing::Instrument as _;

use crate::action::Action;
use crate::call::Call;
use crate::fault::Fault;
use crate::options::Options;
use crate::params::Params;
use crate::reply::{self, Format};
use crate::signal::Path;
use crate::token::{self, Begun};

/// The type of a body with parameters.
const FORM: &str = "application/x-www-form-urlencoded";

/// The parts of the API.
pub struct Parts {
    /// Options.
    pub options: Options,
    /// The use cases.
    pub service: Service,
}

/// The CloudFormation query API. Cheap to clone.
#[derive(Clone)]
pub struct Cfn {
    parts: Arc<Parts>,
}

/// The ID of a request, and the address of its client.
type Origin<'a> = (&'a str, Option<IpAddr>);

/// What is known of a request while it is processed, for the log.
#[derive(Default)]
struct Known {
    action: Option<&'static str>,
    /// `None`: there is no audit, or the request is not one of the API.
    audit: Option<Audit>,
    /// The stack that the request names.
    stack: Option<String>,
}

impl Cfn {
    /// Builds the API from its parts.
    pub fn new(parts: Parts) -> Self {
        Self { parts: Arc::new(parts) }
    }

    /// The router, to be served or called directly.
    pub fn router(&self) -> Router {
        let cfn = self.clone();
        Router::new().fallback(move |request: Request<Body>| {
            let cfn = cfn.clone();
            async move { cfn.answer(request).await }
        })
    }

    /// Serves until `shutdown`, then completes the running requests.
    pub async fn serve(
        self,
        listeners: impl Into<Listeners>,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        let limits = self.parts.options.connections.clone();
        kiln_web::serve(listeners, self.router(), limits, shutdown).await
    }

    async fn answer(&self, request: Request<Body>) -> Response {
        let backends = &self.parts.service.backends;
        let heat_projects = || self.parts.service.heat_projects.count();
        if let Some(response) = kiln_web::probe(request.uri().path(), backends, heat_projects).await {
            return response;
        }
        let (head, body) = request.into_parts();
        let client = self.parts.options.proxies.client(&head);
        let track = Track::begin(backends, &head, client);
        let audit = |auditor| Audit::new(auditor, &track.id, self.address(&head), client).without_query();
        let audit = self.parts.options.auditor.clone().map(audit);
        let mut known = Known { audit, ..Known::default() };
        let cors = &self.parts.options.cors;
        if let Some(response) = cors.preflight(&head) {
            return response;
        }
        let mut response = self.negotiate(&head, body, (&track.id, client), &mut known).instrument(track.span()).await;
        if let Some(audit) = known.audit.take() {
            let named = [("action", known.action.map(str::to_owned)), ("stack", known.stack.take())];
            let named = named.into_iter().filter_map(|(name, content)| Some(Attachment { name, content: content? }));
            audit.end(backends, &head, &response, named.collect());
        }
        cors.apply(&head, &mut response);
        track.of(known.action).at("cfn", known.action).end(backends, &head, &mut response);
        response
    }

    async fn negotiate(&self, head: &Head, body: Body, origin: Origin<'_>, known: &mut Known) -> Response {
        let Ok(path) = percent_decode_str(head.uri.path()).decode_utf8() else {
            return StatusCode::NOT_FOUND.into_response();
        };
        match kiln_web::negotiate(&path, &head.headers) {
            Negotiated::List => {
                known.audit = None;
                kiln_web::versions(&self.address(head))
            }
            Negotiated::V1("" | "/") => self.query(head, body, origin, known).await,
            Negotiated::V1(path) if Path::of(path).is_some() => self.signal(head, path, body, origin, known).await,
            Negotiated::V1(_) | Negotiated::Nothing => {
                known.audit = None;
                StatusCode::NOT_FOUND.into_response()
            }
        }
    }

    /// A request of the query API: the parameters are in the URL, in a form, or both.
    async fn query(&self, head: &Head, body: Body, origin: Origin<'_>, known: &mut Known) -> Response {
        let (id, client) = origin;
        if !matches!(head.method, Method::GET | Method::POST) {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        }
        let mut params = Query::parse(head.uri.query());
        let format = Params::new(params.clone()).format();
        let body = match self.read(head, body).await {
            Ok(body) => body,
            Err(fault) => return reply::fault(format, &fault, id),
        };
        let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with(FORM) {
            params.append(Query::parse(Some(&String::from_utf8_lossy(&body))));
        } else if head.method == Method::POST && SignedRequest::is_version_4(head, params.names()) {
            // The signature may not cover the type of the body, so it must not change what the request means.
            let fault =
                SignatureError::Partial("The Content-Type of a signed POST must be application/x-www-form-urlencoded.");
            return reply::fault(format, &fault.into(), id);
        }
        let params = Params::new(params);
        let format = params.format();
        let caller = match self.authenticate(head, &params, &body).await {
            Ok(caller) => caller,
            Err(fault) => return reply::fault(format, &fault, id),
        };
        match self.passed_on(head, &body, (&caller.project_id, false), client, known).await {
            Ok(None) => {}
            Ok(Some(response)) => return response,
            Err(fault) => return reply::fault(format, &fault, id),
        }
        match self.act(head, params, caller, id, known).await {
            Ok((action, result)) => reply::result(format, action.name, id, result),
            Err(fault) => reply::fault(format, &fault, id),
        }
    }

    async fn act(
        &self,
        head: &Head,
        params: Params,
        caller: Arc<Caller>,
        id: &str,
        known: &mut Known,
    ) -> Result<(&'static Action, kiln_value::Value), Fault> {
        kiln_web::known(&caller);
        self.begin_audit(head, &caller, known)?;
        let action = params.get("Action").and_then(Action::of_name);
        let action = action.ok_or_else(|| Fault::invalid_action(None))?;
        known.action = Some(action.name);
        let stack = params.pairs().find(|(name, _)| *name == "StackName");
        known.stack = stack.map(|(_, stack)| stack.to_owned());
        params.check()?;
        let params = params.of_action(action.parameters);
        let call = Call { cfn: Arc::clone(&self.parts), caller, params };
        call.allow(action.rule)?;
        let admission = &self.parts.options.admission;
        if action.is_change()
            && let Some(text) = admission.maintenance.text()
        {
            return Err(Fault::maintenance(&text));
        }
        if !action.is_of_guests() {
            admission.of_project(call.backends(), &call.caller.project_id).map_err(Fault::too_many)?;
        }
        let repeatable = match token::begin(&call, action, id).await? {
            Begun::Run(repeatable) => repeatable,
            Begun::Answered(result) => return Ok((action, result)),
        };
        let work = steps::metered(call.service().options.limits.request_steps, action.run(&call));
        let result = call.backends().caches.threads.within(&call.caller.project_id, work).await;
        if let Some(repeatable) = repeatable {
            token::end(repeatable, &result).await;
        }
        Ok((action, result?))
    }

    /// A request to the URL of a resource.
    async fn signal(&self, head: &Head, path: &str, body: Body, origin: Origin<'_>, known: &mut Known) -> Response {
        let (id, client) = origin;
        let Some(path) = Path::of(path) else { return StatusCode::NOT_FOUND.into_response() };
        let params = Params::new(Query::parse(head.uri.query()));
        let answered = async {
            let body = self.read(head, body).await?;
            if let Some(project) = path.project()
                && let Some(response) = self.passed_on(head, &body, (&project, true), client, known).await?
            {
                return Ok(response);
            }
            let caller = self.authenticate(head, &params, &body).await?;
            kiln_web::known(&caller);
            self.begin_audit(head, &caller, known)?;
            // As in Heat, the signature is checked first.
            if head.method != path.method() {
                return Ok(StatusCode::NOT_FOUND.into_response());
            }
            let call = Call { cfn: Arc::clone(&self.parts), caller, params: params.clone() };
            path.run(&call, &body).await
        };
        answered.await.unwrap_or_else(|fault| {
            if fault.status == StatusCode::FORBIDDEN {
                let key = kiln_identity::access_key(head, |name| params.get(name)).unwrap_or_default();
                tracing::warn!(key, path = head.uri.path(), reason = fault.message, "a signal was refused");
            }
            reply::fault(Format::Xml, &fault, id)
        })
    }

    fn begin_audit(&self, head: &Head, caller: &Caller, known: &mut Known) -> Result<(), Fault> {
        let Some(audit) = &mut known.audit else { return Ok(()) };
        audit.begin(&self.parts.service.backends, head, Some(caller)).map_err(|_| Fault::unavailable())
    }

    /// The address that the client used.
    fn address(&self, head: &Head) -> String {
        kiln_web::address(head, self.parts.options.proxies.headers)
    }

    /// Heat's response, if the project belongs to Heat.
    async fn passed_on(
        &self,
        head: &Head,
        body: &[u8],
        (project, is_of_guest): (&str, bool),
        client: Option<IpAddr>,
        known: &mut Known,
    ) -> Result<Option<Response>, Fault> {
        let Some(service) = &self.parts.options.heat else { return Ok(None) };
        if !service.answers_for(project, is_of_guest).await? {
            return Ok(None);
        }
        let body = body.to_vec().into();
        let response = service.pass_on((project, is_of_guest), head, &body, client, &self.address(head)).await;
        if !matches!(response, Ok(None)) {
            // Heat writes its own audit events.
            (known.audit, known.action) = (None, Some(Heat::ROUTE));
            tracing::Span::current().record("project", project);
        }
        Ok(response?)
    }

    /// The caller, unless the stacks of his project belong to a Heat.
    async fn authenticate(&self, head: &Head, params: &Params, body: &[u8]) -> Result<Arc<Caller>, Fault> {
        let caller = self.authenticated(head, params, body).await?;
        if self.parts.options.heat.is_none() && self.parts.service.heat_projects.has(&caller.project_id) {
            return Err(Fault::of_heat());
        }
        Ok(caller)
    }

    /// The caller: by a signature, or by a token as in the REST API.
    async fn authenticated(&self, head: &Head, params: &Params, body: &[u8]) -> Result<Arc<Caller>, Fault> {
        let identity = &self.parts.service.identity;
        let names = params.pairs().map(|(name, _)| name);
        if !SignedRequest::is_signed(head, names) && head.headers.contains_key("x-auth-token") {
            return identity.authenticate(&head.headers).await.map_err(|denied| match denied {
                Denied::Unauthorized { .. } => Fault::denied("the token is not valid"),
                Denied::Unavailable(_) => Fault::unavailable(),
            });
        }
        let signed = match SignedRequest::read(head, params.pairs(), body) {
            Ok(signed) => signed,
            // Without a Keystone there are no keys, and everybody is the owner of the service.
            Err(error) => match identity.authenticate(&head.headers).await {
                Ok(caller) if caller.token.is_none() => return Ok(caller),
                _ => return Err(error.into()),
            },
        };
        Ok(identity.authenticate_signed(&signed).await?)
    }

    async fn read(&self, head: &Head, body: Body) -> Result<Vec<u8>, Fault> {
        let options = &self.parts.options;
        let read = kiln_web::read_body(head, body, options.max_body);
        match tokio::time::timeout(options.connections.body, read).await {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(BodyError::TooLarge(size))) => {
                let limit = options.max_body;
                Err(Fault::limit(&format!(
                    "Request body size ({size} bytes) exceeds maximum allowed size ({limit} bytes)."
                )))
            }
            Ok(Err(BodyError::Broken)) => Err(Fault::invalid("The body of the request is not complete.")),
            Err(_) => Err(Fault::invalid("The body of the request was not received in time.")),
        }
    }
}
