//! Stores pending writes.
//!
//! Nothing is done in the cloud before it is stored.

use std::sync::Arc;

use kiln_store::Error;

use super::Work;

impl Work {
    /// Stores pending writes, then checks for a newer request.
    pub(super) async fn flush(&mut self) -> Result<(), Error> {
        let mut stored = false;
        for (child, requests) in self.writes.take_cancels() {
            self.cancel_child(child, requests).await?;
        }
        self.fill_snapshot().await?;
        while let Some(batch) = self.writes.take(&self.model, self.actor.options.batch) {
            self.stack = self.actor.backends.store.commit(self.actor.lease, batch).await?;
            stored = true;
        }
        if !stored {
            return Ok(());
        }
        // The row of the stack says what has come meanwhile.
        if self.stack.id == self.root.id {
            self.root = Arc::new(self.stack.clone());
        }
        self.again |= self.stack.generation > self.request.generation;
        if !self.again {
            self.heed_new_guards().await?;
        }
        self.look_for_new_messages().await
    }
}
