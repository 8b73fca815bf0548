//! Passes requests of the page to the REST API, with the token of the session.

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::header::{
    ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING, USER_AGENT,
    WWW_AUTHENTICATE,
};
use http::request::Parts as Head;
use http::{Request, Uri};
use tower::ServiceExt as _;

use crate::error::PageError;
use crate::session::Session;

/// What the API gets of the headers of a browser: no cookie, no `Origin` that CORS would answer, no credentials.
const PASSED: [HeaderName; 7] = [
    ACCEPT,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    HOST,
    HeaderName::from_static("last-event-id"),
    TRANSFER_ENCODING,
    USER_AGENT,
];

/// `path` is below the project: `/stacks`.
pub(crate) async fn forward(
    api: &Router,
    mut head: Head,
    body: Body,
    path: &str,
    session: &Session,
) -> Result<Response, PageError> {
    let query = head.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let uri: Result<Uri, _> = format!("/v1/{}{path}{query}", session.project.id).parse();
    head.uri = uri.map_err(|error| PageError::Form(error.to_string()))?;
    let mut headers = HeaderMap::new();
    for name in PASSED {
        headers.extend(head.headers.get(&name).cloned().map(|value| (name, value)));
    }
    // The API of the own process asks for none.
    if !session.token.expose().is_empty() {
        let token = HeaderValue::try_from(session.token.expose());
        let mut token = token.map_err(|_| PageError::SignedOut)?;
        token.set_sensitive(true);
        headers.insert(HeaderName::from_static("x-auth-token"), token);
    }
    head.headers = headers;
    let mut response = match api.clone().oneshot(Request::from_parts(head, body)).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    response.headers_mut().remove(WWW_AUTHENTICATE);
    Ok(response)
}
