//! Update in place, replace, or refuse: what a change of properties means (semantics.md §7, steps 6 to 9).

use kiln_value::{Diagnostic, Map, Value};

use crate::{ResourceType, properties};

/// What a change of properties means for a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
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
/// error.
pub fn compare(resource_type: &ResourceType, name: &str, before: &Map, after: &Map) -> Decision {
    let schema = &resource_type.properties;
    let after = match properties::resolve(schema, after) {
        Ok(after) => after,
        Err(error) => return Decision::Error(error),
    };
    let before = schema
        .iter()
        .filter_map(|(key, property)| Some((key.clone(), properties::value(key, property, before).ok()?)))
        .collect();
    compare_resolved(resource_type, name, &before, &after)
}

/// The same for properties that [`properties::resolve`] has gone over: both maps hold all names of the schema.
pub fn compare_resolved(resource_type: &ResourceType, name: &str, before: &Map, after: &Map) -> Decision {
    let changed: Map = after
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if changed.is_empty() {
        return Decision::Unchanged;
    }
    let schema = |key: &str| resource_type.properties.get(key);
    let mut fixed: Vec<&str> =
        changed.keys().map(String::as_str).filter(|key| schema(key).is_some_and(|p| p.immutable)).collect();
    if !fixed.is_empty() {
        fixed.sort_unstable();
        let text =
            format!("Update to properties {} of {name} ({}) is not supported.", fixed.join(", "), resource_type.name);
        return Decision::Error(Diagnostic::new("NotSupported", text));
    }
    let reasons: Vec<_> = changed
        .iter()
        .filter(|(key, _)| !schema(key).is_some_and(|p| p.update_allowed))
        .map(|(key, value)| (key.clone(), reason(before.get(key), value)))
        .collect();
    if reasons.is_empty() { Decision::Update { changed } } else { Decision::Replace { reasons } }
}

fn reason(before: Option<&Value>, after: &Value) -> String {
    let show = |value: &Value| kiln_value::text::repr(value);
    let before = before.map_or_else(|| "another value".to_owned(), show);
    format!("cannot be changed in place from {before} to {}", show(after))
}
