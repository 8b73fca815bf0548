//! The REST API of another machine, for a dashboard that runs alone.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_LENGTH, HOST};
use http::{Request, StatusCode};
use kiln_cloud::{HttpRequest, SharedClient};
use kiln_web::{end_to_end, url_at};
use serde_json::json;
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
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LONGEST).await else {
        return refused(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large");
    };
    let url = url_at(root, &head);
    let mut headers = end_to_end(&head.headers);
    headers.remove(HOST);
    headers.remove(CONTENT_LENGTH);
    let body = (!body.is_empty()).then_some(body);
    let request = HttpRequest { method: head.method, url, headers, body, timeout: Duration::MAX };
    match client.stream(request).await {
        Ok(answer) => {
            let mut response = Response::new(Body::from_stream(answer.body));
            (*response.status_mut(), *response.headers_mut()) = (answer.status, end_to_end(&answer.headers));
            response
        }
        Err(error) => refused(StatusCode::BAD_GATEWAY, &format!("the service at {root} does not answer: {error}")),
    }
}

fn refused(status: StatusCode, message: &str) -> Response {
    // The shape of the API's errors.
    (status, axum::Json(json!({ "error": { "type": "Unreachable", "message": message } }))).into_response()
}
