//! Requests that Heat answers, while Kiln stands before it.

use std::net::IpAddr;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::request::Parts as Head;
use kiln_value::{Chain, Class};
use kiln_web::{Heat, NotPassed};
use tracing::Span;

use crate::error::ApiError;
use crate::http::body;
use crate::options::Options;

/// What becomes of a request.
pub(crate) enum Passing {
    /// It has a response.
    Answered(Response),
    /// Kiln answers it; with its body, if that was read.
    OfKiln(Body),
}

/// Passes a request on to Heat if the project in its path belongs to Heat.
pub(crate) async fn pass_on(
    service: &Heat,
    options: &Options,
    (head, path): (&Head, &str),
    request: Body,
    (client, address, is_of_guest): (Option<IpAddr>, &str, bool),
) -> Passing {
    let project = path.split('/').nth(1).unwrap_or_default();
    if project.is_empty() {
        return Passing::OfKiln(request);
    }
    let answered = async {
        if !service.answers_for(project, is_of_guest).await? {
            return Ok(Err(request));
        }
        let read = tokio::time::timeout(options.connections.body, body::bytes(head, request, options.max_body));
        let bytes = read.await.map_err(|_| ApiError::too_slow())??;
        // While a body arrived, it may have been switched.
        if !bytes.is_empty() && !service.answers_for(project, is_of_guest).await? {
            return Ok(Err(bytes.into()));
        }
        Span::current().record("project", project);
        let bytes = bytes.into();
        let response = service.pass_on((project, is_of_guest), head, &bytes, client, address).await?;
        Ok(response.ok_or_else(|| bytes.into()))
    };
    match answered.await {
        Ok(Ok(response)) => Passing::Answered(response),
        Ok(Err(body)) => Passing::OfKiln(body),
        Err(error) => Passing::Answered(ApiError::into_response(error)),
    }
}

impl From<NotPassed> for ApiError {
    fn from(error: NotPassed) -> Self {
        tracing::warn!("a request for Heat has no answer: {}", Chain(&error));
        let status = error.status();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            return Self::of_heat();
        }
        let class = status.canonical_reason().unwrap_or_default().replace(' ', "");
        Self { status, ..Self::new(Class::of(class), error.to_string()) }
    }
}
