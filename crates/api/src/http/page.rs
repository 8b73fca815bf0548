//! The default bodies of webob: HTML, JSON or plain text, depending on the Accept header
//! (`observed_body_by_accept_header` of reference/rest_api.json).

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use http::{HeaderMap, StatusCode};
use kiln_value::{text, value};

use crate::error::title;

/// The format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Html,
    Json,
    Plain,
}

/// 404 for an unknown path.
pub(crate) fn not_found(headers: &HeaderMap) -> Response {
    let said = "The resource could not be found.";
    page(headers, StatusCode::NOT_FOUND, &format!("{said}<br /><br />\n"), &format!("{said}\n\n "))
}

/// 202.
pub(crate) fn accepted(headers: &HeaderMap) -> Response {
    let said = "The request is accepted for processing.";
    page(headers, StatusCode::ACCEPTED, &format!("{said}<br /><br />\n"), &format!("{said}\n\n "))
}

/// 302 to a URL.
pub(crate) fn found(headers: &HeaderMap, location: &str) -> Response {
    let said = "you should be redirected automatically.";
    let shown = escape(location);
    let html = format!("The resource was found at <a href=\"{shown}\">{shown}</a>;\n{said}");
    let plain = format!("The resource was found at {location}; {said}");
    let mut response = page(headers, StatusCode::FOUND, &html, &plain);
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

fn page(headers: &HeaderMap, status: StatusCode, html: &str, plain: &str) -> Response {
    let title = title(status);
    let line = format!("{} {title}", status.as_u16());
    let (content_type, body) = match form(headers) {
        Form::Html => (
            "text/html; charset=UTF-8",
            format!(
                "<html>\n <head>\n  <title>{line}</title>\n </head>\n <body>\n  <h1>{line}</h1>\n  {html}\n\n\n </body>\n</html>"
            ),
        ),
        Form::Json => (
            "application/json",
            text::json(&value!({ "message": (format!("{html}\n\n")), "code": (&line), "title": title })),
        ),
        Form::Plain => ("text/plain; charset=UTF-8", format!("{line}\n\n{plain}  ")),
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// The preferred one of HTML and JSON by the weights of the client, HTML first; plain text if it accepts neither.
fn form(headers: &HeaderMap) -> Form {
    let accept = headers.get("accept").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (html, json) = (weight(accept, "text", "html"), weight(accept, "application", "json"));
    if html > 0.0 && html >= json {
        Form::Html
    } else if json > 0.0 {
        Form::Json
    } else {
        Form::Plain
    }
}

/// The weight of a media type in an Accept header: that of the most specific matching range, 0 if there is none.
fn weight(accept: &str, kind: &str, subtype: &str) -> f32 {
    let mut best = (0, 0.0);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let exactness = match parts.next().and_then(|range| range.split_once('/')) {
            Some((k, s)) if k.eq_ignore_ascii_case(kind) && s.eq_ignore_ascii_case(subtype) => 3,
            Some((k, "*")) if k.eq_ignore_ascii_case(kind) => 2,
            Some(("*", "*")) => 1,
            _ => continue,
        };
        let q = parts.find_map(|parameter| parameter.strip_prefix("q=")?.parse::<f32>().ok()).unwrap_or(1.0);
        if exactness > best.0 {
            best = (exactness, q);
        }
    }
    best.1
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form_of(accept: &str) -> Form {
        let mut headers = HeaderMap::new();
        headers.insert("accept", accept.parse().unwrap());
        form(&headers)
    }

    #[test]
    fn weights_and_ranges() {
        assert_eq!(form(&HeaderMap::new()), Form::Plain);
        assert_eq!(form_of("*/*"), Form::Html);
        assert_eq!(form_of("application/json"), Form::Json);
        assert_eq!(form_of("text/plain"), Form::Plain);
        assert_eq!(form_of("text/*;q=0.5, application/json"), Form::Json);
        assert_eq!(form_of("text/html;q=0, */*"), Form::Json);
    }
}
