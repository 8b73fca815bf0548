//! Responses in XML, or in JSON with `ContentType=JSON`.

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use kiln_value::{Map, Value, text, value};
use kiln_web::Reason;

use crate::fault::Fault;
use crate::xml;

/// The format of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Xml,
    Json,
}

/// The result of an action.
pub(crate) fn result(format: Format, action: &str, request_id: &str, result: Value) -> Response {
    let envelope = value!({
        (format!("{action}Result")): result,
        "ResponseMetadata": { "RequestId": request_id },
    });
    body(format, StatusCode::OK, &format!("{action}Response"), envelope)
}

/// An error.
pub(crate) fn fault(format: Format, fault: &Fault, request_id: &str) -> Response {
    let error = value!({
        "Error": { "Type": (fault.who()), "Code": (fault.code), "Message": (&fault.message) },
        "RequestId": request_id,
    });
    let mut response = body(format, fault.status, "ErrorResponse", error);
    response.extensions_mut().insert(Reason(format!("{}: {}", fault.code, fault.message)));
    if fault.status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}

/// One element as a document.
pub(crate) fn document(name: &str, content: &Value) -> Response {
    body(Format::Xml, StatusCode::OK, name, content.clone())
}

fn body(format: Format, status: StatusCode, name: &str, content: Value) -> Response {
    let (kind, text) = match format {
        Format::Xml => {
            let mut text = String::new();
            xml::element(&mut text, name, &content);
            ("application/xml", text)
        }
        Format::Json => ("application/json", text::json(&Value::Map(Map::from([(name.to_owned(), content)])))),
    };
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
