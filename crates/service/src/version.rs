//! What a plan was computed from.

use std::fmt::Write as _;

use kiln_store::{Digest, Stack, StackQuery};

use crate::{Error, Service};

impl Service {
    /// A text that changes with the tree of a stack: with each request to one of its stacks, as scaling makes them, and
    /// while nothing is in progress with anything that an engine stores, such as a signal.
    pub async fn version_of(&self, stack: &Stack) -> Result<String, Error> {
        let query = StackQuery { root: Some(stack.root), nested: true, ..StackQuery::default() };
        let mut tree = self.backends.store.stacks(&query).await?;
        tree.sort_unstable_by_key(|stack| stack.id);
        let mut text = String::new();
        for stack in tree {
            let writes = if stack.is_pending() { -1 } else { stack.writes };
            _ = writeln!(text, "{} {} {writes}", stack.id, stack.generation);
        }
        Ok(Digest::of(&text).to_string())
    }
}
