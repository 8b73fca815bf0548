//! Cross-origin requests of browsers, with the options of oslo.middleware (`[cors]`).

use axum::body::Body;
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderName, HeaderValue, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, Method};

use crate::heat::Passed;

/// Headers that every request may have.
const SIMPLE: [&str; 8] = [
    "Accept",
    "Accept-Language",
    "Cache-Control",
    "Content-Language",
    "Content-Type",
    "Expires",
    "Last-Modified",
    "Pragma",
];

/// Who may call the API from a page of another origin. The default allows nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cors {
    /// The allowed origins (`allowed_origin`); `*` allows all.
    pub origins: Vec<String>,
    /// Whether requests may have cookies and credentials of the browser (`allow_credentials`).
    pub credentials: bool,
    /// Headers that a page may read (`expose_headers`).
    pub exposed: Vec<String>,
    /// Seconds for which a browser may keep the response to a preflight request (`max_age`); 0: not at all.
    pub max_age: u64,
    /// Allowed methods (`allow_methods`).
    pub methods: Vec<String>,
    /// Allowed headers (`allow_headers`), in addition to the simple ones.
    pub headers: Vec<String>,
}

impl Default for Cors {
    /// The defaults of Heat.
    fn default() -> Self {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            origins: Vec::new(),
            credentials: true,
            exposed: texts(&["X-Auth-Token", "X-Subject-Token", "X-Service-Token", "X-OpenStack-Request-ID"]),
            max_age: 3600,
            methods: texts(&["GET", "PUT", "POST", "DELETE", "PATCH"]),
            headers: texts(&[
                "X-Auth-Token",
                "X-Identity-Status",
                "X-Roles",
                "X-Service-Catalog",
                "X-User-Id",
                "X-Tenant-Id",
                "X-OpenStack-Request-ID",
            ]),
        }
    }
}

impl Cors {
    /// The value of `Access-Control-Allow-Origin`; `None` if the origin is not allowed.
    fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        if self.origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()) {
            return Some(origin.clone());
        }
        self.origins.iter().any(|allowed| allowed == "*").then(|| HeaderValue::from_static("*"))
    }

    /// The response to an allowed preflight request, which has no token. Other requests are processed.
    pub fn preflight(&self, head: &Parts) -> Option<Response> {
        let origin = self.allowed(&head.headers).filter(|_| head.method == Method::OPTIONS)?;
        let method = head.headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
        if !self.methods.iter().any(|allowed| allowed.as_bytes() == method.as_bytes()) {
            return None;
        }
        let wanted = head.headers.get(ACCESS_CONTROL_REQUEST_HEADERS);
        let names = wanted.map_or(Ok(""), HeaderValue::to_str).ok()?;
        let is_known = |name: &str| {
            let mut known = self.headers.iter().map(String::as_str).chain(SIMPLE);
            known.any(|known| known.eq_ignore_ascii_case(name))
        };
        if !names.split(',').map(str::trim).filter(|name| !name.is_empty()).all(is_known) {
            return None;
        }
        let mut response = Response::new(Body::empty());
        self.allow(&mut response, origin);
        let headers = response.headers_mut();
        if self.max_age > 0 {
            headers.insert(ACCESS_CONTROL_MAX_AGE, self.max_age.into());
        }
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, method.clone());
        if let Some(wanted) = wanted {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        Some(response)
    }

    /// Lets an allowed page read a response. Heat has its own rules for its responses.
    pub fn apply(&self, head: &Parts, response: &mut Response) {
        if response.extensions().get::<Passed>().is_some() {
            return;
        }
        let Some(origin) = self.allowed(&head.headers) else { return };
        self.allow(response, origin);
        if !self.exposed.is_empty()
            && let Ok(exposed) = HeaderValue::from_str(&self.exposed.join(","))
        {
            response.headers_mut().insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
    }

    fn allow(&self, response: &mut Response, origin: HeaderValue) {
        let headers = response.headers_mut();
        headers.append(VARY, HeaderValue::from(HeaderName::from_static("origin")));
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        if self.credentials {
            headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, StatusCode};

    use super::*;

    fn head(method: Method, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri("/v1/t/stacks");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn cors(origins: &[&str]) -> Cors {
        Cors { origins: origins.iter().map(|origin| (*origin).to_owned()).collect(), ..Cors::default() }
    }

    const PAGE: (&str, &str) = ("origin", "https://dashboard.example");
    const PUT: (&str, &str) = ("access-control-request-method", "PUT");

    #[test]
    fn preflights_of_allowed_origins_are_answered() {
        let wanted = ("access-control-request-headers", "x-auth-token, Content-Type");
        let cors = cors(&["https://other.example", "https://dashboard.example"]);
        let response = cors.preflight(&head(Method::OPTIONS, &[PAGE, PUT, wanted])).unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let header = |name: &str| response.headers()[name].to_str().unwrap();
        assert_eq!(header("access-control-allow-origin"), PAGE.1);
        assert_eq!(header("access-control-allow-methods"), "PUT");
        assert_eq!(header("access-control-allow-headers"), wanted.1);
        assert_eq!(header("access-control-max-age"), "3600");
        assert_eq!(header("access-control-allow-credentials"), "true");
        assert_eq!(header("vary"), "origin");
    }

    #[test]
    fn all_others_are_processed() {
        let allowed = cors(&["https://dashboard.example"]);
        let secret = ("access-control-request-headers", "x-secret");
        let trace = ("access-control-request-method", "TRACE");
        for headers in [&[PUT][..], &[PAGE], &[PAGE, trace], &[PAGE, PUT, secret], &[("origin", "https://evil"), PUT]] {
            assert!(allowed.preflight(&head(Method::OPTIONS, headers)).is_none(), "{headers:?}");
        }
        assert!(allowed.preflight(&head(Method::GET, &[PAGE, PUT])).is_none());
        assert!(Cors::default().preflight(&head(Method::OPTIONS, &[PAGE, PUT])).is_none(), "off by default");
    }

    #[test]
    fn responses_may_be_read_by_allowed_pages_only() {
        let read = |cors: &Cors, origin: &str| {
            let mut response = Response::new(Body::empty());
            cors.apply(&head(Method::GET, &[("origin", origin)]), &mut response);
            let text = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            (text("access-control-allow-origin"), text("access-control-expose-headers"))
        };
        let (origin, exposed) = read(&cors(&[PAGE.1]), PAGE.1);
        assert_eq!(origin.as_deref(), Some(PAGE.1));
        assert_eq!(exposed.unwrap(), "X-Auth-Token,X-Subject-Token,X-Service-Token,X-OpenStack-Request-ID");
        assert_eq!(read(&cors(&[PAGE.1]), "https://evil.example"), (None, None));
        assert_eq!(read(&cors(&["*"]), "https://any.example").0.as_deref(), Some("*"));
    }
}
