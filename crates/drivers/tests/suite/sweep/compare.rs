//! Compares two clouds without values that differ between runs: IDs, times, addresses.

use kiln_testcloud::Snapshot;
use serde_json::{Map, Value};

/// Values that are not determined by the template: counters, random values, placement.
const CHANCE: [&str; 11] = [
    "dns_assignment",
    "revision_number",
    "hostId",
    "fingerprint",
    "public_key",
    "OS-EXT-SRV-ATTR:instance_name",
    "OS-EXT-SRV-ATTR:host",
    "OS-EXT-SRV-ATTR:hypervisor_hostname",
    "device",
    "binding:host_id",
    "host_name",
];

/// The differences of two clouds; empty if they are equal.
pub(crate) fn differences(expected: &Snapshot, found: &Snapshot) -> Vec<String> {
    let mut out = Vec::new();
    for (kind, expected) in &expected.objects {
        let found = &found.objects[kind];
        // Most objects are identical and need not be masked.
        let mut missing = unlike(expected, found);
        for row in unlike(found, expected) {
            match missing.iter().position(|other| *other == row) {
                Some(at) => drop(missing.remove(at)),
                None => out.push(format!("{kind} has {row}")),
            }
        }
        out.extend(missing.into_iter().map(|row| format!("{kind} lacks {row}")));
    }
    out
}

/// The rows, masked, that have no identical row in another list.
fn unlike(rows: &[Map<String, Value>], others: &[Map<String, Value>]) -> Vec<String> {
    let is_there = |(at, row): (usize, &Map<String, Value>)| others.get(at) == Some(row) || others.contains(row);
    let unlike = rows.iter().enumerate().filter(|(at, row)| !is_there((*at, row)));
    unlike.map(|(_, row)| masked(&Value::Object(row.clone())).to_string()).collect()
}

fn masked(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(mask(text)),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(masked).collect();
            items.sort_by_key(ToString::to_string);
            Value::Array(items)
        }
        Value::Object(map) => {
            let rest = map.iter().filter(|(key, _)| !CHANCE.contains(&key.as_str()));
            let mut rest: Vec<_> = rest.map(|(key, value)| (mask(key), masked(value))).collect();
            rest.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(rest.into_iter().collect())
        }
        other => other.clone(),
    }
}

fn mask(text: &str) -> String {
    if text.parse::<std::net::IpAddr>().is_ok() {
        return "<address>".to_owned();
    }
    if text.starts_with("20") && text.contains('T') && text.contains(':') {
        return "<time>".to_owned();
    }
    if text.len() == 17 && text.split(':').count() == 6 {
        return "<mac>".to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // IDs begin at word boundaries.
    while let Some(end) =
        rest.find(|c: char| !c.is_alphanumeric()).map(|at| at + 1).or(Some(rest.len())).filter(|n| *n > 0)
    {
        if let Some(length) = [36, 32].into_iter().find(|length| rest.get(..*length).is_some_and(is_id)) {
            out.push_str("<id>");
            rest = &rest[length..];
        } else {
            let end = rest.char_indices().map(|(at, c)| at + c.len_utf8()).find(|at| *at >= end).unwrap_or(rest.len());
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        }
    }
    out
}

fn is_id(text: &str) -> bool {
    text.bytes().next().is_some_and(|byte| byte.is_ascii_hexdigit()) && uuid::Uuid::try_parse(text).is_ok()
}
