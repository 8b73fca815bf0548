//! Two clouds compared without what differs from run to run: ids, times, addresses.

use std::collections::BTreeMap;

use kiln_testcloud::Snapshot;
use serde_json::{Map, Value};

/// What is in a cloud, each object as a text, by type, in order.
pub(crate) type Contents = BTreeMap<&'static str, Vec<String>>;

/// What nobody decides: counters, chance, placement.
const CHANCE: [&str; 9] = [
    "revision_number",
    "hostId",
    "fingerprint",
    "public_key",
    "OS-EXT-SRV-ATTR:instance_name",
    "OS-EXT-SRV-ATTR:host",
    "OS-EXT-SRV-ATTR:hypervisor_hostname",
    "device",
    "binding:host_id",
];

pub(crate) fn contents(snapshot: &Snapshot) -> Contents {
    let rows = |rows: &Vec<Map<String, Value>>| {
        let mut rows: Vec<String> = rows.iter().map(|row| masked(&Value::Object(row.clone())).to_string()).collect();
        rows.sort_unstable();
        rows
    };
    snapshot.objects.iter().map(|(kind, objects)| (*kind, rows(objects))).collect()
}

/// How two clouds differ, in words; empty if they do not.
pub(crate) fn differences(expected: &Contents, found: &Contents) -> Vec<String> {
    let mut out = Vec::new();
    for (kind, expected) in expected {
        let mut missing = expected.clone();
        for row in &found[kind] {
            match missing.iter().position(|other| other == row) {
                Some(at) => drop(missing.remove(at)),
                None => out.push(format!("{kind} has {row}")),
            }
        }
        out.extend(missing.into_iter().map(|row| format!("{kind} lacks {row}")));
    }
    out
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
    while let Some(next) = rest.chars().next() {
        let id = [36, 32].into_iter().find(|length| rest.get(..*length).is_some_and(is_id));
        match id {
            Some(length) => {
                out.push_str("<id>");
                rest = &rest[length..];
            }
            None => {
                out.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    out
}

fn is_id(text: &str) -> bool {
    uuid::Uuid::try_parse(text).is_ok()
}
