//! Validates calls without evaluating them.

use std::fmt::Write as _;

use kiln_value::{Diagnostic, Path, Segment};

use super::node::{Call, Context, Node};
use crate::function::fault;

/// Validates every call in a snippet, outermost first. A call validates its own arguments.
pub(crate) fn validate(node: &Node, context: &Context, path: &Path) -> Result<(), Diagnostic> {
    match node {
        Node::Scalar(_) | Node::Absent => Ok(()),
        Node::List(items) => items.iter().enumerate().try_for_each(|(index, item)| match item {
            Node::Scalar(_) => Ok(()),
            item => validate(item, context, &path.index(index)),
        }),
        Node::Map(map) => map.iter().try_for_each(|(key, node)| match node {
            Node::Scalar(_) => Ok(()),
            node => validate(node, context, &path.key(key)),
        }),
        Node::Call(call) => call.function.validate(call, context).map_err(|error| {
            let error = call.locate(error);
            let place = error.path.clone();
            fault::to_validation(error, shown(&path.key(call.name)), place)
        }),
    }
}

/// The path as in Heat's validation errors: an index is appended to the key before it, and a key of digits only looks
/// like an index.
fn shown(path: &Path) -> String {
    let mut text = String::new();
    let mut segments = path.0.iter().peekable();
    while let Some(segment) = segments.next() {
        match segment {
            Segment::Index(index) => _ = write!(text, "[{index}]"),
            Segment::Key(key) => {
                let is_indexed = matches!(segments.peek(), Some(Segment::Index(_)));
                let is_number = !key.is_empty() && key.chars().all(|c| c.is_ascii_digit());
                let dot = if text.is_empty() { "" } else { "." };
                if is_number && !is_indexed {
                    _ = write!(text, "[{key}]");
                } else {
                    text.extend([dot, key]);
                }
            }
        }
    }
    text
}

/// Validates the arguments of a call: the paths in their errors begin at the call.
pub(crate) fn validate_args(call: &Call, context: &Context) -> Result<(), Diagnostic> {
    validate(&call.args, context, &Path::root())
}
