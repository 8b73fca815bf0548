//! Operations over the connection.

use async_trait::async_trait;
use kiln_store::{Error, Operation, OperationId, OperationQuery, OperationStore, StackId};

use super::StoreLink;

#[async_trait]
impl OperationStore for StoreLink {
    async fn operations(&self, query: &OperationQuery) -> Result<Vec<Operation>, Error> {
        self.read("operations", self.inner().operations(query)).await
    }

    async fn operation(&self, root: StackId, id: OperationId) -> Result<Option<Operation>, Error> {
        self.read("operation", self.inner().operation(root, id)).await
    }

    async fn revision(&self, stack: StackId, generation: i64) -> Result<Option<Operation>, Error> {
        self.read("revision", self.inner().revision(stack, generation)).await
    }
}
