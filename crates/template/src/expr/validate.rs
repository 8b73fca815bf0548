//! Checks of calls that do not resolve them.

use std::fmt::Write as _;

use kiln_value::{Diagnostic, Path, Segment};

use super::node::{Call, Context, Node};
use crate::function::fault;

/// Validates every call in a snippet, the outermost first; its own arguments are the call's to validate.
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
            fault::to_validation(error, format!("{}: ", shown(&path.key(call.name))), place)
        }),
    }
}

/// The path as Heat's validation errors show it: a key of digits looks like an index.
fn shown(path: &Path) -> String {
    let is_number = |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_digit());
    let mut text = String::new();
    for segment in &path.0 {
        match segment {
            Segment::Key(key) if is_number(key) => _ = write!(text, "[{key}]"),
            Segment::Key(key) if text.is_empty() => text.push_str(key),
            Segment::Key(key) => {
                text.push('.');
                text.push_str(key);
            }
            Segment::Index(index) => _ = write!(text, "[{index}]"),
        }
    }
    text
}

/// Validates the arguments of a call: their errors show paths from the call on.
pub(crate) fn validate_args(call: &Call, context: &Context) -> Result<(), Diagnostic> {
    validate(&call.args, context, &Path::root())
}
