//! What a plan is computed from.

use std::fmt::Write as _;

use crate::{Digest, Stack};

/// A text that changes with the tree of a stack: with each request to one of its stacks, as scaling makes them, and
/// while nothing is in progress with anything that an engine stores, such as a signal.
pub fn version_of(mut tree: Vec<Stack>) -> String {
    tree.sort_unstable_by_key(|stack| stack.id);
    let mut text = String::new();
    for stack in tree {
        let writes = if stack.is_pending() { -1 } else { stack.writes };
        _ = writeln!(text, "{} {} {writes}", stack.id, stack.generation);
    }
    Digest::of(&text).to_string()
}
