//! `ExportTraceServiceRequest` in JSON, as the protocol of OpenTelemetry encodes it: IDs are hexadecimal, numbers of 64
//! bits are strings, names are in camel case.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Ended;
use crate::spans::{Attribute, Kind};

/// `STATUS_CODE_ERROR`.
const FAILED: u8 = 2;

/// The body of a request with these spans.
pub(super) fn request(resource: &BTreeMap<String, String>, spans: &[Ended]) -> String {
    let resource: Vec<Value> = resource.iter().map(|(name, value)| text(name, value)).collect();
    let scope = json!({"name": "kiln", "version": env!("CARGO_PKG_VERSION")});
    let spans: Vec<Value> = spans.iter().filter_map(span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]})
    .to_string()
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// A span; `None` without a place in a trace.
fn span(ended: &Ended) -> Option<Value> {
    let (data, place) = (&ended.span, ended.span.place?);
    let kind = match data.kind {
        Kind::Internal => 1,
        Kind::Server => 2,
        Kind::Client => 3,
    };
    let own = data.attributes.iter().map(|(key, value)| match value {
        Attribute::Text(value) => text(key, value),
        Attribute::Number(number) => json!({"key": key, "value": {"intValue": number.to_string()}}),
        Attribute::Flag(flag) => json!({"key": key, "value": {"boolValue": flag}}),
    });
    let attributes: Vec<Value> = data.ids().map(|(key, value)| text(key, value)).chain(own).collect();
    let mut span = json!({
        "traceId": format!("{:032x}", place.trace),
        "spanId": format!("{:016x}", place.span),
        "name": data.title(),
        "kind": kind,
        "startTimeUnixNano": data.begun.as_nanosecond().to_string(),
        "endTimeUnixNano": ended.end.max(data.begun).as_nanosecond().to_string(),
        "attributes": attributes,
    });
    if let Some(parent) = place.parent {
        span["parentSpanId"] = format!("{parent:016x}").into();
    }
    if let Some(error) = &data.error {
        span["status"] = json!({"code": FAILED, "message": error});
    }
    Some(span)
}
