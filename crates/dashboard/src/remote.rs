//! The REST API of another machine, for a dashboard that runs alone.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::response::{IntoResponse as _, Response};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{Request, StatusCode};
use kiln_cloud::{HttpRequest, SharedClient};
use serde_json::json;
use std::time::Duration;
use url::Url;

/// The largest body of a request: a template with its files.
const LONGEST: usize = 64 << 20;

/// Passes requests on to the service at `root`, such as `https://cloud:8004`. Bodies come back as they are sent: streams of
/// events too.
pub fn remote(client: SharedClient, root: Url) -> Router {
    Router::new().fallback(move |request: Request<Body>| {
        let (client, root) = (client.clone(), root.clone());
        async move { pass(&client, &root, request).await }
    })
}

async fn pass(client: &SharedClient, root: &Url, request: Request<Body>) -> Response {
    let (mut head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LONGEST).await else {
        return refused(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large");
    };
    let mut url = root.clone();
    url.set_path(&format!("{}{}", root.path().trim_end_matches('/'), head.uri.path()));
    url.set_query(head.uri.query());
    for name in [HOST, CONTENT_LENGTH, TRANSFER_ENCODING] {
        head.headers.remove(name);
    }
    let body = (!body.is_empty()).then_some(body);
    let timeout = Duration::MAX;
    let request = HttpRequest { method: head.method, url, headers: head.headers, body, timeout };
    match client.stream(request).await {
        Ok(answer) => {
            let mut response = Response::new(Body::from_stream(answer.body));
            (*response.status_mut(), *response.headers_mut()) = (answer.status, answer.headers);
            for name in [CONNECTION, TRANSFER_ENCODING] {
                response.headers_mut().remove(name);
            }
            response
        }
        Err(error) => refused(StatusCode::BAD_GATEWAY, &format!("the service at {root} does not answer: {error}")),
    }
}

fn refused(status: StatusCode, message: &str) -> Response {
    // The shape of the API's errors.
    (status, axum::Json(json!({ "error": { "type": "Unreachable", "message": message } }))).into_response()
}
