//! The address that a client used.

use http::request::Parts;

/// `http://host:8004`. With `proxy_headers`, the headers of a proxy take precedence.
pub fn address(head: &Parts, proxy_headers: bool) -> String {
    let header = |name| head.headers.get(name)?.to_str().ok();
    let forwarded = |name| Some(header(name)?).filter(|_| proxy_headers);
    let scheme = forwarded("x-forwarded-proto").unwrap_or("http");
    let host = forwarded("x-forwarded-host").or_else(|| header("host"));
    let host = host.or_else(|| head.uri.authority().map(http::uri::Authority::as_str)).unwrap_or("localhost");
    format!("{scheme}://{host}")
}
