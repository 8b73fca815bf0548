//! Differences between the stored properties of a resource and those of its object (`converge`).

use std::collections::BTreeMap;

use kiln_value::{Map, Value, text};

use crate::ResourceType;

/// Lists with more entries that have no equal entry at the same place count as different.
const MAX_UNORDERED: usize = 100;

/// The properties whose value in the object is not the stored one, with their value in the object.
///
/// `live` is the result of [`crate::Driver::live`]. Only properties that have a stored value and can be updated in place
/// are compared: what the template does not say is not a difference, and an empty default, such as that of `device_id`,
/// says nothing. The order of lists does not matter, because
/// services return them in any order, and neither do additional keys of maps, which services add.
pub fn drift(resource_type: &ResourceType, stored: &Map, live: &Map) -> Map {
    let updatable = |name: &str| resource_type.properties.get(name).is_some_and(|p| p.update_allowed && !p.immutable);
    live.iter()
        .filter(|(name, _)| updatable(name))
        .filter(|(name, value)| stored.get(*name).is_some_and(|stored| !is_empty(stored) && !covers(stored, value)))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Str(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(entries) => entries.is_empty(),
        _ => false,
    }
}

/// Whether a value of an object contains the stored value.
fn covers(stored: &Value, live: &Value) -> bool {
    match (stored, live) {
        (Value::Null, _) => true,
        (stored, Value::Null) => is_empty(stored),
        (Value::Map(stored), Value::Map(live)) => {
            stored.iter().all(|(key, value)| covers(value, live.get(key).unwrap_or(&Value::Null)))
        }
        (Value::List(stored), Value::List(live)) => stored.len() == live.len() && list_covers(stored, live),
        // Services return numbers as texts, and the reverse.
        (_, Value::Map(_) | Value::List(_)) | (Value::Map(_) | Value::List(_), _) => false,
        (stored, live) => stored == live || text::str(stored) == text::str(live),
    }
}

fn list_covers(stored: &[Value], live: &[Value]) -> bool {
    let is_scalar = |value: &Value| !matches!(value, Value::Map(_) | Value::List(_));
    if stored.iter().chain(live).all(is_scalar) {
        return count(stored) == count(live);
    }
    let (stored, mut live): (Vec<&Value>, Vec<&Value>) =
        stored.iter().zip(live).filter(|(stored, live)| !covers(stored, live)).unzip();
    stored.len() <= MAX_UNORDERED
        && stored.iter().all(|stored| match live.iter().position(|live| covers(stored, live)) {
            Some(at) => {
                live.swap_remove(at);
                true
            }
            None => false,
        })
}

fn count(values: &[Value]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(text::str(value)).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    #[test]
    fn services_add_keys_and_reorder_lists() {
        let is_same = |stored: Value, live: Value| covers(&stored, &live);
        assert!(is_same(value!({"a": 1}), value!({"a": "1", "b": 2})));
        assert!(!is_same(value!({"a": 1}), value!({"a": 2})));
        assert!(is_same(value!(["x", "y"]), value!(["y", "x"])));
        assert!(!is_same(value!(["x", "x"]), value!(["x", "y"])));
        assert!(!is_same(value!(["x"]), value!(["x", "y"])));
        let pool = value!([{"start": "1", "end": "2"}, {"start": "5", "end": "6"}]);
        assert!(is_same(pool.clone(), value!([{"start": "5", "end": "6"}, {"end": "2", "start": "1"}])));
        assert!(!is_same(pool, value!([{"start": "5", "end": "6"}, {"start": "5", "end": "6"}])));
        assert!(is_same(value!([]), Value::Null) && !is_same(value!(["x"]), Value::Null));
        assert!(is_same(value!({"a": null}), value!({"a": 3})));
    }

    #[test]
    fn long_lists_of_maps_are_compared_in_linear_time() {
        let list = |from: i64| (from..from + 20_000).map(|n| value!({"n": n})).collect::<Vec<_>>();
        assert!(!list_covers(&list(0), &list(1)));
        assert!(list_covers(&list(0), &list(0)));
    }
}
