//! The interface through which template functions access the stack.

use kiln_value::{Diagnostic, Map, Value};

use crate::Bound;

/// The stack in which functions are resolved.
pub trait Scope {
    /// The template, its parameters, conditions and files.
    fn bound(&self) -> &Bound;

    /// A resource by its logical name; `None` if it does not exist or its condition is false.
    fn resource(&self, name: &str) -> Option<&dyn ResourceView>;

    /// The resource of the parent stack that this stack implements; `None` unless the stack is a provider template.
    fn facade(&self) -> Option<Facade> {
        None
    }

    /// Whether some values of parameters, attributes or references are unknown ([`Value::Unknown`]); values that depend
    /// on them are then unknown too.
    fn has_unknown(&self) -> bool {
        self.bound().has_unknown()
    }

    /// The names of Nova's availability zones.
    fn availability_zones(&self) -> Result<Vec<String>, Diagnostic> {
        Ok(vec!["nova".to_owned()])
    }
}

/// A resource as functions see it.
///
/// The names of actions and statuses are Heat's: `CREATE`, `COMPLETE`; see `docs/heat-behaviour.md` §1.
pub trait ResourceView {
    /// The result of `get_resource`: usually the physical ID; the logical name before there is one.
    fn reference_id(&self) -> Value;

    /// The last action; `INIT` before the first.
    fn action(&self) -> &str;

    /// The status of the last action.
    fn status(&self) -> &str;

    /// Whether resources of this type have this attribute.
    fn has_attribute(&self, name: &str) -> bool;

    /// The value of an attribute; `None` if the attribute does not exist.
    ///
    /// `path` leads into the value; implementations that have the whole value apply it with [`select`].
    fn attribute(&self, name: &str, path: &[Value]) -> Option<Value>;

    /// Why an attribute has no value: the error of the nested stack's output that it comes from.
    fn attribute_error(&self, name: &str, path: &[Value]) -> Option<&str> {
        let _ = (name, path);
        None
    }

    /// The values of all attributes except `show`.
    fn attributes(&self) -> Map;
}

/// The parent stack's resource, as its provider template sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facade {
    /// Metadata, resolved.
    pub metadata: Value,
    /// Deletion policy: `Delete`, `Retain` or `Snapshot`.
    pub deletion_policy: String,
    /// Update policy, resolved.
    pub update_policy: Value,
}

/// Follows a path into the value of an attribute; an invalid step results in null (`docs/heat-behaviour.md` §25,
/// get_attr).
///
/// Maps require string keys. Lists and strings require integers, negative ones from the end; booleans count as 0 and 1.
pub fn select(mut value: Value, path: &[Value]) -> Value {
    for step in path {
        value = match (value, step) {
            (unknown @ Value::Unknown(_), _) => unknown,
            (Value::Map(mut map), Value::Str(key)) => map.swap_remove(key).unwrap_or_default(),
            (Value::List(mut list), step) => match position(step, list.len()) {
                Some(index) => list.swap_remove(index),
                None => Value::Null,
            },
            (Value::Str(text), step) => character(&text, step).unwrap_or_default(),
            _ => Value::Null,
        };
    }
    value
}

/// Python's index: integers and booleans, negative ones from the end; `None` if out of range.
pub(crate) fn position(step: &Value, len: usize) -> Option<usize> {
    let index = match step {
        Value::Int(index) => *index,
        Value::Bool(truth) => i64::from(*truth),
        _ => return None,
    };
    let index = if index < 0 { index.checked_add(i64::try_from(len).ok()?)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < len)
}

/// The character of a string at an index.
pub(crate) fn character(text: &str, step: &Value) -> Option<Value> {
    let index = position(step, text.chars().count())?;
    text.chars().nth(index).map(|c| Value::Str(c.to_string()))
}

/// A stack without any created resources: only the names of its enabled resources are known.
///
/// Used for validation: `get_resource` returns logical names, `get_attr` null.
pub struct Unbuilt<'a> {
    bound: &'a Bound,
    resources: indexmap::IndexMap<String, Planned>,
}

struct Planned(String);

impl<'a> Unbuilt<'a> {
    /// A stack with resources with these names.
    pub fn new(bound: &'a Bound, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let resources = names.into_iter().map(Into::into).map(|name: String| (name.clone(), Planned(name))).collect();
        Self { bound, resources }
    }

    /// A stack without resources.
    pub fn empty(bound: &'a Bound) -> Self {
        Self { bound, resources: indexmap::IndexMap::new() }
    }
}

impl Scope for Unbuilt<'_> {
    fn bound(&self) -> &Bound {
        self.bound
    }

    fn resource(&self, name: &str) -> Option<&dyn ResourceView> {
        self.resources.get(name).map(|planned| planned as &dyn ResourceView)
    }
}

impl ResourceView for Planned {
    fn reference_id(&self) -> Value {
        Value::from(&self.0)
    }

    fn action(&self) -> &'static str {
        "INIT"
    }

    fn status(&self) -> &'static str {
        "COMPLETE"
    }

    /// The schemas of the types are unknown here, so every name is accepted.
    fn has_attribute(&self, _name: &str) -> bool {
        true
    }

    fn attribute(&self, _name: &str, _path: &[Value]) -> Option<Value> {
        Some(Value::Null)
    }

    fn attributes(&self) -> Map {
        Map::new()
    }
}
