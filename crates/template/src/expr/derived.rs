//! What the functions of a snippet make of hidden values.

use std::collections::BTreeSet;

use kiln_value::{Path, Value, text};

use super::node::{Call, Context, Node};
use super::outermost::calls;

/// The texts in a snippet's value that functions have made of hidden texts. Those that the snippet contains, or reads and
/// that are not hidden, do not count: `map_merge` makes nothing of its items.
pub(crate) fn derived(node: &Node, value: &Value, context: &Context, is_hidden: &dyn Fn(&str) -> bool) -> Vec<String> {
    let search = Search { context, is_hidden };
    let mut found = Vec::new();
    calls(node, value, &Path::root(), &mut |call, value, _| {
        let mut public = BTreeSet::new();
        // A value that is read is hidden as it is.
        if !call.function.reads_stack() && search.takes_hidden(&call.args, &mut public) {
            let is_derived = |text: &String| !text.is_empty() && !public.contains(text);
            found.extend(texts(value).into_iter().filter(is_derived));
        }
    });
    found
}

struct Search<'a> {
    context: &'a Context<'a>,
    is_hidden: &'a dyn Fn(&str) -> bool,
}

impl Search<'_> {
    /// Whether arguments contain a hidden value. Collects the texts in them that are not hidden.
    fn takes_hidden(&self, args: &Node, public: &mut BTreeSet<String>) -> bool {
        match args {
            Node::Absent => false,
            Node::Scalar(value) => {
                public.extend(texts(value));
                false
            }
            Node::List(items) => items.iter().fold(false, |found, item| self.takes_hidden(item, public) | found),
            Node::Map(map) => map.values().fold(false, |found, item| self.takes_hidden(item, public) | found),
            Node::Call(call) if call.function.reads_stack() => self.reads_hidden(call, public),
            Node::Call(call) => self.takes_hidden(&call.args, public),
        }
    }

    fn reads_hidden(&self, call: &Call, public: &mut BTreeSet<String>) -> bool {
        // What cannot be read may be hidden.
        let Ok(value) = call.function.view(call, self.context) else { return true };
        let texts = value.iter().flat_map(|value| texts(value));
        let (hidden, shown): (Vec<_>, Vec<_>) = texts.partition(|text| (self.is_hidden)(text));
        public.extend(shown);
        !hidden.is_empty()
    }
}

/// The texts in a value, and its numbers as texts.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null | Value::Bool(_) | Value::Unknown(_) => Vec::new(),
        Value::List(items) => items.iter().flat_map(texts).collect(),
        Value::Map(map) => map.values().flat_map(texts).collect(),
        scalar => vec![text::str(scalar)],
    }
}
