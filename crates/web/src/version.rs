//! Version negotiation (`api/middleware/version_negotiation.py`).

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde_json::json;

/// Prefix of an Accept header that contains the version.
const MEDIA_TYPE: &str = "application/vnd.openstack.orchestration-";

/// The result of the negotiation.
#[derive(Debug, PartialEq, Eq)]
pub enum Negotiated<'a> {
    /// Version 1, with the rest of the path.
    V1(&'a str),
    /// The list of versions.
    List,
    /// No match: 404.
    Nothing,
}

/// Determines the version of a decoded path.
pub fn negotiate<'a>(path: &'a str, headers: &HeaderMap) -> Negotiated<'a> {
    let inner = path.strip_prefix('/').unwrap_or(path);
    let (first, rest) = match inner.find('/') {
        Some(slash) => inner.split_at(slash),
        None => (inner, ""),
    };
    if matches!(first, "" | "versions") {
        return Negotiated::List;
    }
    if let Some(version) = number(first) {
        return if version == (1, 0) { Negotiated::V1(rest) } else { Negotiated::List };
    }
    let accept = headers.get("accept").and_then(|value| value.to_str().ok()).unwrap_or_default();
    match accept.strip_prefix(MEDIA_TYPE) {
        Some(version) if number(version) == Some((1, 0)) => Negotiated::V1(path),
        Some(_) => Negotiated::List,
        None => Negotiated::Nothing,
    }
}

/// Parses `v1`, `v1.0` to major and minor.
fn number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.strip_prefix('v')?.split_once('.').unwrap_or((text.strip_prefix('v')?, "0"));
    Some((major.parse().ok()?, if minor.is_empty() { 0 } else { minor.parse().ok()? }))
}

/// The list of versions, 300. `root` is the URL of the service without a trailing slash.
pub fn versions(root: &str) -> Response {
    let versions = json!({ "versions": [{
        "id": "v1.0",
        "status": "CURRENT",
        "links": [{ "rel": "self", "href": format!("{root}/v1/") }],
    }] });
    let mut response = Response::new(Body::from(versions.to_string()));
    *response.status_mut() = StatusCode::MULTIPLE_CHOICES;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_path_then_by_header() {
        let none = HeaderMap::new();
        assert_eq!(negotiate("/", &none), Negotiated::List);
        assert_eq!(negotiate("/versions", &none), Negotiated::List);
        assert_eq!(negotiate("/v2/x", &none), Negotiated::List);
        assert_eq!(negotiate("/v1", &none), Negotiated::V1(""));
        assert_eq!(negotiate("/v1.0/t/stacks", &none), Negotiated::V1("/t/stacks"));
        assert_eq!(negotiate("/v1//stacks", &none), Negotiated::V1("//stacks"));
        assert_eq!(negotiate("/t/stacks", &none), Negotiated::Nothing);
        let mut headers = HeaderMap::new();
        headers.insert("accept", format!("{MEDIA_TYPE}v1").parse().unwrap());
        assert_eq!(negotiate("/t/stacks", &headers), Negotiated::V1("/t/stacks"));
    }
}
