//! Partly unknown values.

use kiln_value::{Diagnostic, Map, Path, Segment, Unknown, Value};

use super::node::{Context, Node};
use super::reference;

/// A value as far as it is known before all resources exist.
///
/// A call that refers to a resource without any action (`INIT`), or reads a parameter without a value, is unknown. Its
/// value is the result of its function for null attributes and logical names, or null if the function fails.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Partial {
    /// The value; `None` if absent.
    pub value: Option<Value>,
    /// The locations of unknown values in the value.
    pub unknown: Vec<Path>,
}

impl Partial {
    /// The value, with [`Value::Unknown`] of `place` for each null that stands for an unknown value.
    pub fn or_unknown(self, place: &str) -> Option<Value> {
        let mut value = self.value?;
        for path in &self.unknown {
            let hole = path.0.iter().try_fold(&mut value, |value, segment| match (value, segment) {
                (Value::Map(map), Segment::Key(key)) => map.get_mut(key),
                (Value::List(list), Segment::Index(index)) => list.get_mut(*index),
                _ => None,
            });
            if let Some(hole @ Value::Null) = hole {
                *hole = Value::Unknown(Unknown::of(place));
            }
        }
        Some(value)
    }
}

pub(crate) fn partial(node: &Node, context: &Context) -> Result<Partial, Diagnostic> {
    let mut unknown = Vec::new();
    let value = walk(node, context, &Path::root(), &mut unknown)?;
    Ok(Partial { value, unknown })
}

fn walk(node: &Node, context: &Context, path: &Path, unknown: &mut Vec<Path>) -> Result<Option<Value>, Diagnostic> {
    Ok(Some(match node {
        Node::Scalar(value) => value.clone(),
        Node::Absent => return Ok(None),
        Node::List(items) => {
            let mut list = Vec::with_capacity(items.len());
            for item in items {
                list.extend(walk(item, context, &path.index(list.len()), unknown)?);
            }
            Value::List(list)
        }
        Node::Map(map) => {
            let mut entries = Map::with_capacity(map.len());
            for (key, node) in map {
                if let Some(value) = walk(node, context, &path.key(key), unknown)? {
                    entries.insert(key.clone(), value);
                }
            }
            Value::Map(entries)
        }
        // The branch of an `if` keeps its inner locations.
        Node::Call(call) if call.function.is_macro() => return walk(&call.args, context, path, unknown),
        Node::Call(_) => {
            let is_unknown = match is_unknown(node, context) {
                Err(error) if error.not_known_yet => true,
                other => other?,
            };
            match node.resolve_nullable(context) {
                Err(error) if is_unknown || error.not_known_yet => {
                    unknown.push(path.clone());
                    return Ok(Some(Value::Null));
                }
                value if is_unknown => {
                    unknown.push(path.clone());
                    return value;
                }
                value => return value,
            }
        }
    }))
}

fn is_unknown(node: &Node, context: &Context) -> Result<bool, Diagnostic> {
    let mut names = indexmap::IndexSet::new();
    reference::requires(node, context, "unknown", &mut names)?;
    let init = |name: &String| context.scope.resource(name).is_some_and(|resource| resource.action() == "INIT");
    Ok(names.iter().any(init))
}
