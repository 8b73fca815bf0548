//! The effect of changed properties: update in place, replacement or refusal (docs/heat-behaviour.md §7, steps 6 to 9).

use kiln_value::{Diagnostic, Map, Value};

use crate::{ResourceType, properties};

/// What a change of properties means for a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// Nothing differs.
    Unchanged,
    /// It can be made in place.
    Update {
        /// The properties that differ, with their new values; null for one that is gone.
        changed: Map,
    },
    /// The resource must be replaced.
    Replace {
        /// The properties that ask for it, and why.
        reasons: Vec<(String, String)>,
    },
    /// It cannot be made.
    Error(Diagnostic),
}

/// Compares the properties of a resource called `name`, as templates give them (functions resolved, translated), by
/// their values after coercion.
///
/// Values before that the schema refuses (it may have changed) count as changed; values after that it refuses are an
/// error, unless the property was refused before as well and the resource is replaced anyway.
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

/// The same for properties that [`properties::resolve`] has gone over: both maps hold all names of the schema.
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
        return Comparison::Error(Diagnostic::new("NotSupported", text));
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
