//! The outermost calls of a snippet, beside its value.

use kiln_value::{Path, Value};

use super::node::{Call, Node};

/// Visits the outermost calls of a snippet with their values, and where these are. The branch of an `if` counts as a part of
/// the snippet.
pub(crate) fn calls(node: &Node, value: &Value, path: &Path, visit: &mut dyn FnMut(&Call, &Value, &Path)) {
    match (node, value) {
        (Node::List(nodes), Value::List(items)) => {
            let present = nodes.iter().filter(|node| !node.is_absent());
            let items = present.zip(items).enumerate();
            items.for_each(|(index, (node, item))| calls(node, item, &path.index(index), visit));
        }
        (Node::Map(nodes), Value::Map(map)) => {
            for (key, node) in nodes {
                map.get(key).into_iter().for_each(|value| calls(node, value, &path.key(key), visit));
            }
        }
        (Node::Call(call), value) if call.function.is_macro() => calls(&call.args, value, path, visit),
        (Node::Call(call), value) => visit(call, value, path),
        _ => {}
    }
}
