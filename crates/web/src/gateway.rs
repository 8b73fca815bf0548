//! What a gateway passes on: requests to another service, and its responses.

use http::HeaderMap;
use http::header::CONNECTION;
use http::request::Parts;
use url::Url;

/// The headers of a connection, which are not passed on (RFC 9110, 7.6.1).
const OF_CONNECTION: [&str; 9] = [
    "connection",
    "expect",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The URL of a request at another service. The path stays as the client has encoded it: signatures cover it.
pub fn url_at(root: &Url, head: &Parts) -> Url {
    let mut url = root.clone();
    url.set_path(&format!("{}{}", root.path().trim_end_matches('/'), head.uri.path()));
    url.set_query(head.uri.query());
    url
}

/// The headers without those of the connection, and without those that the header `Connection` names.
pub fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<String> = named.flat_map(|names| names.split(',')).map(|name| name.trim().to_lowercase()).collect();
    let mut kept = headers.clone();
    for name in OF_CONNECTION.into_iter().chain(named.iter().map(String::as_str)) {
        kept.remove(name);
    }
    kept
}
