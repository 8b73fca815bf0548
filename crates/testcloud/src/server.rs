//! Processing of a request: parse, inject faults, execute, record, respond.

use std::sync::Arc;

use axum::Router;
use axum::body::Body as HttpBody;
use axum::extract::{ConnectInfo, Request as HttpRequest, State};
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::cloud::Shared;
use crate::fault::{BuildFault, Fault, FaultEffect};
use crate::journal::RecordedCall;
use crate::reply::{Body, Outcome, Refusal, Reply};
use crate::request::{Service, ServiceCall};
use crate::snapshot::Snapshot;
use crate::state::CloudState;
use crate::wire::Wire;
use crate::{cinder, glance, keystone, neutron, nouns, nova};

/// Larger bodies are rejected with 413.
const BODY_LIMIT: usize = 64 << 20;

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(serve).with_state(shared)
}

async fn serve(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(wire): ConnectInfo<Wire>,
    request: HttpRequest,
) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, BODY_LIMIT).await else {
        return http_response(Reply::empty(413));
    };
    let (method, path) = (parts.method.as_str(), parts.uri.path());
    if let Some(reply) = control(&shared, method, path, &body) {
        return http_response(reply);
    }
    let query = parts.uri.query().unwrap_or_default();
    let Some(request) = ServiceCall::new(method, path, query, parts.headers, body) else {
        return http_response(Reply::empty(404));
    };

    let Some(reply) = exchange(shared, request).await else {
        wire.cut();
        return http_response(Reply::empty(502));
    };
    http_response(reply)
}

/// Executes a request with its faults; `None` if the response is lost. The call runs in its own task, so that it is
/// executed even if the caller disconnects.
pub(crate) async fn exchange(shared: Arc<Shared>, request: ServiceCall) -> Option<Reply> {
    let effect = shared.faults.judge(&request);
    if effect.hangs {
        std::future::pending::<()>().await;
    }
    let done = tokio::spawn(async move {
        let wait = shared.latency + effect.delay;
        if !wait.is_zero() {
            sleep(wait).await;
        }
        perform(&shared, &request, effect)
    });
    let reply = done.await.ok()?;
    if effect.stalls {
        std::future::pending::<()>().await;
    }
    Some(reply).filter(|_| !effect.lost)
}

/// Executes and records a call.
fn perform(shared: &Shared, request: &ServiceCall, effect: FaultEffect) -> Reply {
    let injected = |status| render(request.service, &Refusal::new(status, "InjectedFault", "Injected fault."));
    for _ in 0..effect.twins {
        let _ = dispatch(&mut shared.world(), request);
    }
    let mut reply = if let Some(status) = effect.status {
        injected(status)
    } else {
        let mut world = shared.world();
        world.build_fault = effect.build;
        let outcome = dispatch(&mut world, request);
        world.build_fault = BuildFault::default();
        let mut reply = outcome.unwrap_or_else(|refusal| render(request.service, &refusal));
        if let Body::Json(body) = &mut reply.body {
            if request.method == "GET" {
                world.lags.hide(body);
            } else if !effect.lag.is_zero() {
                world.lags.add(body, effect.lag);
            }
        }
        reply
    };
    if let Some(status) = effect.status_after {
        reply = injected(status);
    }
    shared.journal.record(RecordedCall {
        service: request.service,
        method: request.method.clone(),
        path: request.local_path(),
        status: reply.status,
        lost: effect.lost || effect.stalls,
        traceparent: request.header("traceparent").map(str::to_owned),
    });
    let reply = reply.header("date", shared.world().now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
    if request.method == "HEAD" { Reply { body: Body::Empty, ..reply } } else { reply }
}

fn dispatch(world: &mut CloudState, request: &ServiceCall) -> Outcome {
    match request.service {
        Service::Identity => keystone::serve(world, request),
        Service::Compute => nova::serve(world, request),
        Service::Network => neutron::serve(world, request),
        Service::Volume => cinder::serve(world, request),
        Service::Image => glance::serve(world, request),
        _ => nouns::serve(world, request),
    }
}

/// An error in the format of the service.
fn render(service: Service, refusal: &Refusal) -> Reply {
    let status = refusal.status;
    let reply = match service {
        Service::Identity => keystone::refuse(refusal),
        Service::Compute | Service::Volume | Service::Network if status == 401 => middleware_401(),
        Service::Compute | Service::Volume => nova::refuse(refusal),
        Service::Network => neutron::refuse(refusal),
        Service::Image => glance::refuse(refusal),
        _ => nouns::refuse(service, refusal),
    };
    if status == 401 { reply.header("www-authenticate", "Keystone uri=\"/identity\"") } else { reply }
}

/// The response of the token middleware of Nova, Neutron and Cinder.
fn middleware_401() -> Reply {
    let message = "The request you have made requires authentication.";
    Reply::json(401, json!({"error": {"code": 401, "title": "Unauthorized", "message": message}}))
}

/// The control API of the simulation, for tests in other processes.
fn control(shared: &Shared, method: &str, path: &str, body: &[u8]) -> Option<Reply> {
    let reply = match (method, path) {
        ("GET", "/faults") => {
            let list = shared.faults.list();
            Reply::ok(list.into_iter().map(|(fault, met)| json!({"fault": fault, "met": met})).collect::<Value>())
        }
        ("POST", "/faults") => match serde_json::from_slice::<Fault>(body) {
            Ok(fault) => {
                shared.faults.add(fault);
                Reply::empty(204)
            }
            Err(error) => Reply::text(400, error.to_string()),
        },
        ("DELETE", "/faults") => {
            shared.faults.clear();
            Reply::empty(204)
        }
        ("GET", "/requests") => {
            Reply::ok(json!({"counts": shared.journal.counts(), "requests": shared.journal.list()}))
        }
        ("DELETE", "/requests") => {
            shared.journal.clear();
            Reply::empty(204)
        }
        ("GET", "/snapshot") => Reply::ok(json!(Snapshot::of(&shared.world()))),
        _ => return None,
    };
    Some(reply)
}

fn http_response(reply: Reply) -> Response {
    let (kind, body) = match reply.body {
        Body::Empty => (None, HttpBody::empty()),
        Body::Json(value) => (Some("application/json"), HttpBody::from(value.to_string())),
        Body::Text(text) => (Some("text/plain; charset=UTF-8"), HttpBody::from(text)),
        Body::Bytes(bytes) => (Some("application/octet-stream"), HttpBody::from(bytes)),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if let Some(kind) = kind {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    for (name, value) in reply.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    response
}
