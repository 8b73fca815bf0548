//! What a plan was computed from.

use kiln_store::{Stack, StackQuery, version_of};

use crate::{Error, Service};

impl Service {
    /// The live stacks of a tree.
    pub(crate) async fn tree_of(&self, stack: &Stack) -> Result<Vec<Stack>, Error> {
        let query = StackQuery { root: Some(stack.root), nested: true, ..StackQuery::default() };
        Ok(self.backends.store.stacks(&query).await?)
    }

    /// The version of the tree of a stack ([`kiln_store::version_of`]).
    pub async fn version_of(&self, stack: &Stack) -> Result<String, Error> {
        Ok(version_of(self.tree_of(stack).await?))
    }
}
