//! References of a snippet: resources that it requires and attributes that it reads.

use indexmap::IndexSet;
use kiln_value::{Diagnostic, Path, Value};

use super::node::{Call, Context, Node};
use super::outermost::calls;

/// An attribute of a resource that a snippet reads.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeUse {
    /// Logical name of the resource.
    pub resource: String,
    /// Which attribute.
    pub wanted: Wanted,
}

/// The part of a resource that is read.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// All attributes: `get_attr` with only a resource.
    All,
    /// One attribute, and the path into its value.
    One {
        /// The name of the attribute; a string unless the template is wrong.
        name: Value,
        /// Keys and indexes.
        path: Vec<Value>,
    },
}

pub(crate) fn requires(
    node: &Node,
    context: &Context,
    path: &str,
    names: &mut IndexSet<String>,
) -> Result<(), Diagnostic> {
    match node {
        Node::Scalar(_) | Node::Absent => Ok(()),
        Node::List(items) => items.iter().enumerate().try_for_each(|(index, item)| match item {
            Node::Scalar(_) => Ok(()),
            item => requires(item, context, &format!("{path}[{index}]"), names),
        }),
        Node::Map(map) => map.iter().try_for_each(|(key, node)| match node {
            Node::Scalar(_) => Ok(()),
            node => requires(node, context, &format!("{path}.{key}"), names),
        }),
        Node::Call(call) => {
            // The call's own reference is the first to fail, but the last in the order.
            let own = reference(call, context, path)?;
            requires(&call.args, context, &format!("{path}.{}", call.name), names)?;
            names.extend(own);
            Ok(())
        }
    }
}

/// The call's own reference. If the only argument is another call, that call fails first.
fn reference(call: &Call, context: &Context, path: &str) -> Result<Option<String>, Diagnostic> {
    if let Node::Call(inner) = &call.args {
        reference(inner, context, &format!("{path}.{}", call.name))?;
    }
    call.function.reference(call, context, path).map_err(|error| call.locate(error))
}

pub(crate) fn attributes(node: &Node, context: &Context, uses: &mut Vec<AttributeUse>) {
    match node {
        Node::Scalar(_) | Node::Absent => {}
        Node::List(items) => items.iter().for_each(|item| attributes(item, context, uses)),
        Node::Map(map) => map.values().for_each(|node| attributes(node, context, uses)),
        Node::Call(call) => {
            attributes(&call.args, context, uses);
            uses.extend(call.function.attribute_use(call, context));
        }
    }
}

/// The places in a snippet's value that are the ID or an attribute of a resource.
pub(crate) fn sources(node: &Node, value: &Value, context: &Context) -> Vec<(Path, String)> {
    let mut found = Vec::new();
    calls(node, value, &Path::root(), &mut |call, value, path| {
        let is_known = !matches!(value, Value::Null | Value::Unknown(_) | Value::List(_) | Value::Map(_));
        found.extend(source(call, context).filter(|_| is_known).map(|source| (path.clone(), source)));
    });
    found
}

/// What a call reads of a resource.
fn source(call: &Call, context: &Context) -> Option<String> {
    match call.function.attribute_use(call, context) {
        Some(AttributeUse { resource, wanted: Wanted::One { name: Value::Str(name), .. } }) => {
            Some(format!("{resource}.{name}"))
        }
        _ => call.function.reference(call, context, "").ok()?,
    }
}
