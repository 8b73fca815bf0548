//! The effect of changed properties: update in place, replacement or refusal (docs/heat-behaviour.md §7, steps 6 to 9).

use kiln_value::{Class, Diagnostic, Map, Value};

use crate::{ResourceType, properties};

/// The effect of changed properties on a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// There is no difference.
    Unchanged,
    /// The resource can be updated in place.
    Update {
        /// The changed properties with their new values; null for removed ones.
        changed: Map,
    },
    /// The resource must be replaced.
    Replace {
        /// The properties that require the replacement, with the reasons.
        reasons: Vec<(String, String)>,
    },
    /// The update is refused.
    Error(Diagnostic),
}

/// Compares the properties of the resource `name`, as given by templates (after functions and translation), by their
/// values after coercion.
///
/// If the schema refuses an old value (the schema may have changed), it counts as changed. If it refuses a new value,
/// this is an error, unless the old value was refused too and the resource is replaced anyway.
pub fn compare(resource_type: &ResourceType, name: &str, before: &Map, after: &Map) -> Comparison {
    let (mut held, mut wanted, mut refused) = (Map::new(), Map::new(), None);
    for (key, property) in &resource_type.properties {
        let old = properties::value(key, property, before).ok();
        let new = match properties::value(key, property, after) {
            Ok(new) => new,
            Err(error) if old.is_some() => return Comparison::Error(error),
            Err(error) => {
                refused.get_or_insert(error);
                Value::Null
            }
        };
        held.extend(old.map(|old| (key.clone(), old)));
        wanted.insert(key.clone(), new);
    }
    match (compare_resolved(resource_type, name, &held, &wanted), refused) {
        (Comparison::Update { .. }, Some(error)) => Comparison::Error(error),
        (decision, _) => decision,
    }
}

/// As [`compare`], for the results of [`properties::resolve`]: both maps contain all names of the schema.
pub fn compare_resolved(resource_type: &ResourceType, name: &str, before: &Map, after: &Map) -> Comparison {
    let changed: Map = after
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if changed.is_empty() {
        return Comparison::Unchanged;
    }
    let schema = |key: &str| resource_type.properties.get(key);
    let mut fixed: Vec<&str> =
        changed.keys().map(String::as_str).filter(|key| schema(key).is_some_and(|p| p.immutable)).collect();
    if !fixed.is_empty() {
        fixed.sort_unstable();
        let text =
            format!("Update to properties {} of {name} ({}) is not supported.", fixed.join(", "), resource_type.name);
        return Comparison::Error(Diagnostic::new(Class::NotSupported, text));
    }
    let reasons: Vec<_> = changed
        .iter()
        .filter(|(key, _)| !schema(key).is_some_and(|p| p.update_allowed))
        .map(|(key, value)| (key.clone(), reason(before.get(key), value)))
        .collect();
    if reasons.is_empty() { Comparison::Update { changed } } else { Comparison::Replace { reasons } }
}

fn reason(before: Option<&Value>, after: &Value) -> String {
    let show = |value: &Value| kiln_value::text::repr(value);
    let before = before.map_or_else(|| "another value".to_owned(), show);
    format!("cannot be changed in place from {before} to {}", show(after))
}
