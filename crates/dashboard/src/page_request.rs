//! Which requests are from the page: not from another site that the browser visits, nor from another host name.
//!
//! A browser sends the cookie of a session also with requests that other sites cause. Therefore each request of the page
//! has a header that other sites cannot send without the consent of this one (CORS), and each change has an `Origin`.

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HeaderMap, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::request::Parts as Head;
use kiln_web::{Query, address};
use percent_encoding::percent_decode;

use crate::error::PageError;
use crate::session::Session;

/// The header of each request of the page. Its value is what the page shows: the ID of the project, with `@` and the
/// region if there are several, percent-encoded; or `-`.
const HEADER: &str = "x-kiln-dashboard";

/// Nothing from other hosts, no inline code, no frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const OTHER_ORIGIN: &str = "its Origin is another one; behind a proxy, set enable_proxy_headers_parsing";
const NO_ORIGIN: &str = "the header Origin is missing";

/// The address of the dashboard as the browser sees it.
pub(crate) struct Place {
    /// `https://host:8004`.
    origin: String,
    /// The prefix of a proxy: empty or `/orchestration`.
    prefix: String,
}

impl Place {
    pub(crate) fn of(head: &Head, proxy_headers: bool) -> Self {
        let address = address(head, proxy_headers);
        let host = address.find("://").map_or(0, |at| at + 3);
        let end = address[host..].find('/').map_or(address.len(), |at| host + at);
        Self { origin: address[..end].to_owned(), prefix: address[end..].to_owned() }
    }

    /// Its host and port: `127.0.0.1:8080`.
    pub(crate) fn host(&self) -> &str {
        self.origin.split_once("://").map_or("", |(_, host)| host)
    }

    fn is_https(&self) -> bool {
        self.origin.starts_with("https:")
    }

    /// The name of the cookie. With `__Host-` no other host and no page without TLS can set it.
    fn cookie(&self) -> &'static str {
        if self.is_https() { "__Host-kiln-dashboard" } else { "kiln-dashboard" }
    }

    fn attributes(&self) -> String {
        let path = if self.is_https() { "/; Secure".to_owned() } else { format!("{}/dashboard", self.prefix) };
        format!("; Path={path}; HttpOnly; SameSite=Strict")
    }

    /// The value of the cookie in a request.
    pub(crate) fn cookie_in<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.cookie()).map(|(_, value)| value)
    }

    pub(crate) fn set_cookie(&self, headers: &mut HeaderMap, value: &str) -> Result<(), PageError> {
        let line = format!("{}={value}{}", self.cookie(), self.attributes());
        // Browsers keep 4,096 bytes.
        let line = HeaderValue::try_from(&line).ok().filter(|_| line.len() <= 4096);
        headers.insert(SET_COOKIE, line.ok_or(PageError::TooLarge(value.len()))?);
        Ok(())
    }

    pub(crate) fn remove_cookie(&self, headers: &mut HeaderMap) {
        let line = format!("{}={}; Max-Age=0", self.cookie(), self.attributes());
        headers.extend(HeaderValue::try_from(line).ok().map(|line| (SET_COOKIE, line)));
    }
}

/// Refuses requests that are not from the page.
pub(crate) fn check(head: &Head, place: &Place) -> Result<(), PageError> {
    if !head.headers.contains_key(HEADER) {
        return Err(PageError::Foreign("the header X-Kiln-Dashboard is missing"));
    }
    match head.headers.get(ORIGIN) {
        Some(origin) if origin.as_bytes() != place.origin.as_bytes() => Err(PageError::Foreign(OTHER_ORIGIN)),
        None if !head.method.is_safe() => Err(PageError::Foreign(NO_ORIGIN)),
        _ => Ok(()),
    }
}

/// Refuses requests of a tab that shows another project than that of the session.
pub(crate) fn check_project(head: &Head, session: &Session) -> Result<(), PageError> {
    let shown = head.headers.get(HEADER).and_then(|value| percent_decode(value.as_bytes()).decode_utf8().ok());
    if shown.as_deref() == Some(&*session.scope()) { Ok(()) } else { Err(PageError::OtherProject(session.place())) }
}

/// Refuses sockets that are not from the page. A browser sends no header of the page with them, but always an `Origin`.
pub(crate) fn check_socket(head: &Head, place: &Place) -> Result<(), PageError> {
    match head.headers.get(ORIGIN) {
        Some(origin) if origin.as_bytes() == place.origin.as_bytes() => Ok(()),
        Some(_) => Err(PageError::Foreign(OTHER_ORIGIN)),
        None => Err(PageError::Foreign(NO_ORIGIN)),
    }
}

/// Refuses sockets of a tab that shows another project than that of the session.
pub(crate) fn check_project_of_socket(head: &Head, session: &Session) -> Result<(), PageError> {
    if Query::parse(head.uri.query()).given("project") == Some(&session.scope()) {
        Ok(())
    } else {
        Err(PageError::OtherProject(session.place()))
    }
}

/// Headers of every response.
pub(crate) fn protect(headers: &mut HeaderMap) {
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static("same-origin"));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}
