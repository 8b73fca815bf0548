//! Failures as users of Heat know them: the Python client of each service has its own class names and texts, which
//! appear in the status reason of a stack.

use std::borrow::Cow;

use http::StatusCode;
use kiln_resource::{Failure, FailureKind};
use kiln_value::{Class, Value};

use crate::catalog::official_type;
use crate::error::CloudError;
use crate::request_retry;
use crate::transport::{HttpResponse, TransportError};

pub(crate) fn from_error(error: &CloudError) -> Failure {
    match error {
        CloudError::Transport { url, error, .. } => match error {
            TransportError::Timeout => {
                Failure::new(FailureKind::Unavailable, Class::ConnectTimeout, format!("Request to {url} timed out"))
            }
            TransportError::Connect(cause) => no_connection(FailureKind::NotSent, url, cause),
            TransportError::Broken(cause) => no_connection(FailureKind::Unavailable, url, cause),
            TransportError::Address(_) => no_connection(FailureKind::Refused, url, &error.to_string()),
        },
        CloudError::Status { service, response } => from_response(service, response),
        CloudError::NoEndpoint { .. } => Failure::other(Class::EndpointNotFound, error.to_string()),
        CloudError::Malformed { .. } => {
            Failure::new(FailureKind::Unavailable, Class::MalformedResponseBody, error.to_string())
        }
        CloudError::Invalid { .. } => Failure::other(Class::BadRequest, error.to_string()),
        CloudError::NotSent { retry_after, .. } => {
            let failure = Failure::new(FailureKind::NotSent, Class::ServiceUnavailable, error.to_string());
            Failure { retry_after: *retry_after, ..failure }
        }
        CloudError::NoToken { credential, cause } => without_token(credential, cause),
    }
}

fn no_connection(kind: FailureKind, url: &str, cause: &str) -> Failure {
    Failure::new(kind, Class::ConnectFailure, format!("Unable to establish connection to {url}: {cause}"))
}

/// Keystone's response to a token request. The request that needed the token was not sent. A refusal concerns the
/// credential, even with status 404 (a deleted trust).
fn without_token(credential: &str, cause: &CloudError) -> Failure {
    let failure = from_error(cause);
    match cause {
        CloudError::NoEndpoint { .. }
        | CloudError::Invalid { .. }
        | CloudError::Transport { error: TransportError::Address(_), .. } => failure,
        _ if failure.is_passing() => Failure { kind: FailureKind::NotSent, ..failure },
        _ => {
            let text = format!("Keystone refuses {credential}: {}", failure.message);
            Failure::new(FailureKind::Refused, Class::AuthorizationFailure, text)
        }
    }
}

/// The failure for a response with a status of 400 or more.
pub(crate) fn from_response(service: &str, response: &HttpResponse) -> Failure {
    let status = response.status;
    let body = serde_json::from_slice::<Value>(&response.body).unwrap_or_default();
    let (class, message) = match official_type(service) {
        "network" => neutron(response, &body),
        "compute" => nova(response, &body),
        "block-storage" | "shared-file-system" => cinder(response, &body),
        "image" => glance(response, &body),
        "orchestration" => heat(response, &body),
        "load-balancer" => octavia(response, &body),
        _ => keystone(response, &body),
    };
    let class = Class::of(class);
    let kind = kind(status, &class);
    let retry_after =
        matches!(status.as_u16(), 413 | 429 | 503).then(|| request_retry::retry_after(response)).flatten();
    Failure { retry_after, ..Failure::new(kind, class, message) }
}

fn kind(status: StatusCode, class: &Class) -> FailureKind {
    match status.as_u16() {
        404 => FailureKind::NotFound,
        // An exceeded quota is permanent, as in Heat.
        409 if *class == Class::OverQuotaClient => FailureKind::Refused,
        409 => FailureKind::Conflict,
        429 => FailureKind::OverLimit,
        500 => FailureKind::ServerError,
        502.. => FailureKind::Unavailable,
        // Including 501: it is a definite response.
        _ => FailureKind::Refused,
    }
}

/// Errors that neutronclient maps by their server-side type; all others are mapped by status.
const NEUTRON_TYPES: &[&str] = &[
    "NetworkNotFound",
    "PortNotFound",
    "StateInvalid",
    "NetworkInUse",
    "PortInUse",
    "IpAddressInUse",
    "IpAddressAlreadyAllocated",
    "InvalidIpForNetwork",
    "InvalidIpForSubnet",
    "OverQuota",
    "IpAddressGenerationFailure",
    "MacAddressInUse",
    "HostNotCompatibleWithFixedIps",
    "ExternalIpAddressExhausted",
];

fn neutron(response: &HttpResponse, body: &Value) -> (Cow<'static, str>, String) {
    let error = body.get("NeutronError");
    let text = |key| error.and_then(|e| e.str_at(key)).filter(|s| !s.is_empty());
    let mut message = match (text("message").or_else(|| body.str_at("message")), error) {
        (Some(message), _) => message.to_owned(),
        (None, Some(error)) => kiln_value::text::str(error),
        (None, None) => format!("{}-{}", response.status.as_u16(), plain(response)),
    };
    if let Some(detail) = text("detail") {
        message = format!("{message}\n{detail}");
    }
    if let Some(id) = response.header("x-openstack-request-id") {
        message = format!("{message}\nNeutron server returns request_ids: ['{id}']");
    }
    let class = match text("type").filter(|t| NEUTRON_TYPES.contains(t)) {
        Some(known) => format!("{known}Client").into(),
        None => match response.status.as_u16() {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            500 => "InternalServerError",
            503 => "ServiceUnavailable",
            _ => "NeutronClientException",
        }
        .into(),
    };
    (class, message)
}

fn nova(response: &HttpResponse, body: &Value) -> (Cow<'static, str>, String) {
    let class = match response.status.as_u16() {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        409 => "Conflict",
        413 => "OverLimit",
        429 => "RateLimit",
        501 => "HTTPNotImplemented",
        _ => "ClientException",
    };
    let own = match response.status.as_u16() {
        400 => "Bad request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        409 => "Conflict",
        413 => "Over limit",
        429 => "Rate limit",
        501 => "Not Implemented",
        _ => "Unknown Error",
    };
    let message = first_message(body).unwrap_or(Cow::Borrowed(own));
    (class.into(), numbered(&message, response, "x-compute-request-id"))
}

fn cinder(response: &HttpResponse, body: &Value) -> (Cow<'static, str>, String) {
    let class = match response.status.as_u16() {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        406 => "NotAcceptable",
        413 => "OverLimit",
        501 => "HTTPNotImplemented",
        _ => "ClientException",
    };
    let reason = response.status.canonical_reason().unwrap_or("Unknown Error");
    let message = first_message(body).unwrap_or(Cow::Borrowed(reason));
    (class.into(), numbered(&message, response, "x-compute-request-id"))
}

/// The classes that glanceclient and heatclient have in common.
fn http_class(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 => "HTTPBadRequest",
        401 => "HTTPUnauthorized",
        403 => "HTTPForbidden",
        404 => "HTTPNotFound",
        405 => "HTTPMethodNotAllowed",
        409 => "HTTPConflict",
        413 => "HTTPOverLimit",
        500 => "HTTPInternalServerError",
        501 => "HTTPNotImplemented",
        502 => "HTTPBadGateway",
        503 => "HTTPServiceUnavailable",
        _ => "HTTPException",
    }
}

fn glance(response: &HttpResponse, body: &Value) -> (Cow<'static, str>, String) {
    let class = http_class(response.status);
    let details = match first_message(body) {
        Some(message) => message.into_owned(),
        None => plain(response),
    };
    let details = if details.is_empty() { class.to_owned() } else { details };
    (class.into(), format!("HTTP {details}"))
}

/// Another orchestration service, for OS::Heat::Stack.
fn heat(response: &HttpResponse, body: &Value) -> (Cow<'static, str>, String) {
    let class = match response.status {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "HTTPUnsupported",
        status => http_class(status),
    };
    let message = first_message(body).map_or_else(|| plain(response), Cow::into_owned);
    (class.into(), format!("ERROR: {message}"))
}

/// octaviaclient has one class for all errors.
fn octavia(response: &HttpResponse, body: &Value) -> (Cow<'static, str>, String) {
    let message = first_message(body).unwrap_or_else(|| plain(response).into());
    ("OctaviaClientException".into(), numbered(&message, response, "x-openstack-request-id"))
}

/// keystoneauth's own classes, which all other clients share.
fn keystone(response: &HttpResponse, body: &Value) -> (Cow<'static, str>, String) {
    let (class, own) = match response.status.as_u16() {
        400 => ("BadRequest", "Bad Request"),
        401 => ("Unauthorized", "Unauthorized"),
        403 => ("Forbidden", "Forbidden"),
        404 => ("NotFound", "Not Found"),
        405 => ("MethodNotAllowed", "Method Not Allowed"),
        406 => ("NotAcceptable", "Not Acceptable"),
        409 => ("Conflict", "Conflict"),
        413 => ("RequestEntityTooLarge", "Request Entity Too Large"),
        500 => ("InternalServerError", "Internal Server Error"),
        501 => ("HttpNotImplemented", "Not Implemented"),
        502 => ("BadGateway", "Bad Gateway"),
        503 => ("ServiceUnavailable", "Service Unavailable"),
        504 => ("GatewayTimeout", "Gateway Timeout"),
        505.. => ("HttpServerError", "HTTP Error"),
        _ => ("HTTPClientError", "HTTP Client Error"),
    };
    let message = first_message(body).unwrap_or(Cow::Borrowed(own));
    (class.into(), numbered(&message, response, "x-openstack-request-id"))
}

/// The text of `{"message": …}`, `{"faultstring": …}`, `{"title": …, "description": …}`, `{"error": {"message": …}}`,
/// an
/// `errors` list, or `{"<whatever>": {"message": …}}` or with a `faultstring`.
fn first_message(body: &Value) -> Option<Cow<'_, str>> {
    if let Some(message) = ["message", "faultstring", "description"].iter().find_map(|key| body.str_at(key)) {
        return Some(message.into());
    }
    if let Some(message) = body.get("error").and_then(|e| e.str_at("message")) {
        return Some(message.into());
    }
    if let Some(title) = body.get("errors").and_then(|e| e.at(0)).and_then(|e| e.str_at("title")) {
        return Some(title.into());
    }
    let first = body.as_map()?.values().next()?;
    first.str_at("message").or_else(|| first.str_at("faultstring")).map(Cow::Borrowed)
}

fn numbered(message: &str, response: &HttpResponse, id_header: &str) -> String {
    let text = format!("{message} (HTTP {})", response.status.as_u16());
    match response.header(id_header) {
        Some(id) => format!("{text} (Request-ID: {id})"),
        None => text,
    }
}

/// The body as text: HTML tags are removed, and lines are joined by colons without repetitions.
fn plain(response: &HttpResponse) -> String {
    let text = String::from_utf8_lossy(&response.body);
    if !response.header("content-type").is_some_and(|t| t.contains("html")) {
        return text.into_owned();
    }
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut shown = String::new();
        let mut in_tag = false;
        for c in line.trim().chars() {
            match c {
                '<' => in_tag = true,
                '>' if in_tag => in_tag = false,
                c if !in_tag => shown.push(c),
                _ => {}
            }
        }
        if !shown.is_empty() && !lines.contains(&shown) {
            lines.push(shown);
        }
    }
    lines.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::HeaderMap;

    fn failure(service: &str, status: u16, header: (&'static str, &str), body: &str) -> Failure {
        let mut headers = HeaderMap::new();
        headers.insert(header.0, header.1.parse().unwrap());
        let status = StatusCode::from_u16(status).unwrap();
        from_response(service, &HttpResponse { status, headers, body: Bytes::copy_from_slice(body.as_bytes()) })
    }

    #[test]
    fn nova_errors_match_novaclient() {
        let body = r#"{"badRequest": {"code": 400, "message": "Invalid key_name provided."}}"#;
        let got = failure("compute", 400, ("x-compute-request-id", "req-1"), body);
        assert_eq!(got.to_string(), "BadRequest: Invalid key_name provided. (HTTP 400) (Request-ID: req-1)");
        assert_eq!(got.kind, FailureKind::Refused);
        let body = r#"{"forbidden": {"code": 403, "message": "Quota exceeded for cores: Requested 1"}}"#;
        assert_eq!(failure("compute", 403, ("x", "y"), body).kind, FailureKind::Refused);
        // Only 429 is retried soon; 500 ends the call, a response of a proxy may not.
        let kind = |status| failure("compute", status, ("x", "y"), "{}").kind;
        assert_eq!((kind(413), kind(429)), (FailureKind::Refused, FailureKind::OverLimit));
        assert_eq!((kind(500), kind(503)), (FailureKind::ServerError, FailureKind::Unavailable));
    }

    #[test]
    fn neutron_errors_match_neutronclient() {
        let body =
            r#"{"NeutronError": {"type": "SubnetNotFound", "message": "Subnet x could not be found.", "detail": ""}}"#;
        let got = failure("network", 404, ("x-openstack-request-id", "req-1"), body);
        let text = "NotFound: Subnet x could not be found.\nNeutron server returns request_ids: ['req-1']";
        assert_eq!((got.to_string().as_str(), got.kind), (text, FailureKind::NotFound));

        let body = r#"{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['port'].", "detail": ""}}"#;
        let got = failure("network", 409, ("x", "y"), body);
        assert_eq!((got.class.name(), got.kind), ("OverQuotaClient", FailureKind::Refused));

        let got = failure("network", 502, ("content-type", "text/plain"), "proxy says no");
        assert_eq!(got.to_string(), "NeutronClientException: 502-proxy says no");
        assert_eq!(got.kind, FailureKind::Unavailable);
    }

    #[test]
    fn glance_errors_match_glanceclient() {
        let html = "<html>\n <head>\n  <title>404 Not Found</title>\n </head>\n <body>\n  <h1>404 Not Found</h1>\n  No image found\n </body>\n</html>";
        let got = failure("image", 404, ("content-type", "text/html"), html);
        assert_eq!(got.to_string(), "HTTPNotFound: HTTP 404 Not Found: No image found");
    }

    #[test]
    fn cinder_has_no_class_for_conflicts() {
        let body = r#"{"conflictingRequest": {"code": 409, "message": "busy"}}"#;
        let got = failure("volumev3", 409, ("x", "y"), body);
        assert_eq!((got.to_string().as_str(), got.kind), ("ClientException: busy (HTTP 409)", FailureKind::Conflict));
    }
}
