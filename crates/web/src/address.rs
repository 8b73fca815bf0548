//! The address that a client used.

use http::request::Parts;

/// An extension of requests that came with TLS to this server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Https;

/// `http://host:8004`, or `https` with TLS of this server. With `proxy_headers`, the headers of a proxy take precedence, as
/// in oslo.middleware: `Forwarded` (RFC 7239), or `X-Forwarded-Proto` and `X-Forwarded-Host`; and `X-Forwarded-Prefix` is added.
pub fn address(head: &Parts, proxy_headers: bool) -> String {
    let header = |name: &str| head.headers.get(name)?.to_str().ok();
    let of_proxy = |name: &str| header(name).filter(|value| proxy_headers && !value.is_empty());
    let forwarded = of_proxy("forwarded").map(|value| value.split(',').next().unwrap_or_default());
    let (scheme, host) = match forwarded {
        Some(first) => (element(first, "proto"), element(first, "host")),
        None => (of_proxy("x-forwarded-proto"), of_proxy("x-forwarded-host")),
    };
    let host = host.or_else(|| header("host")).or_else(|| head.uri.authority().map(http::uri::Authority::as_str));
    let own = if head.extensions.get::<Https>().is_some() { "https" } else { "http" };
    let (scheme, host) = (scheme.unwrap_or(own), host.unwrap_or("localhost"));
    let prefix = of_proxy("x-forwarded-prefix").unwrap_or_default().trim_end_matches('/');
    format!("{scheme}://{host}{prefix}")
}

/// The value of a parameter in an element of `Forwarded`: `for=10.0.0.1;proto=https;host="heat.example"`.
pub(crate) fn element<'a>(forwarded: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = forwarded.split(';').filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
    Some(value.trim_matches('"')).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(proxy_headers: bool, headers: &[(&str, &str)]) -> String {
        let mut request = http::Request::builder().uri("/v1").header("host", "inside:8004");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        address(&request.body(()).unwrap().into_parts().0, proxy_headers)
    }

    #[test]
    fn proxies_say_what_the_client_used() {
        let old = [("x-forwarded-proto", "https"), ("x-forwarded-host", "heat.example")];
        assert_eq!(of(false, &old), "http://inside:8004");
        assert_eq!(of(true, &old), "https://heat.example");
        assert_eq!(of(true, &[("x-forwarded-prefix", "/orchestration/")]), "http://inside:8004/orchestration");
        let new = ("forwarded", "for=10.0.0.1;Proto=https;host=\"heat.example\", for=10.0.0.2;proto=http;host=proxy");
        assert_eq!(of(true, &[new, old[0]]), "https://heat.example");
        assert_eq!(of(true, &[("forwarded", "for=10.0.0.1")]), "http://inside:8004");
    }
}
