//! Stores pending writes.
//!
//! Nothing is done in the cloud before it is stored. Operations that need no cloud wait for nothing: while the rows of the
//! ones before are stored, the planner goes on with the next.

use std::sync::Arc;

use kiln_store::Error;
use tracing::Instrument as _;

use super::Work;

impl Work {
    /// Stores pending writes, then checks for a newer request.
    pub(super) async fn flush(&mut self) -> Result<(), Error> {
        let mut stored = self.finish_storing().await?;
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
        self.after_commit().await
    }

    /// Stores pending writes: in the background if no call waits for them, and after the batch before.
    pub(super) async fn store_some(&mut self) -> Result<(), Error> {
        if self.slots.any_queued() || self.writes.is_urgent() {
            return self.flush().await;
        }
        if self.finish_storing().await? {
            self.after_commit().await?;
        }
        if let Some(batch) = self.writes.take(&self.model, self.actor.options.batch) {
            let (store, lease) = (Arc::clone(&self.actor.backends.store), self.actor.lease);
            let commit = async move { store.commit(lease, batch).await };
            self.storing.spawn(commit.instrument(self.span.present()));
            // Otherwise the runtime would begin it only when this task waits for it.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Waits for the commit in the background; false if there is none.
    async fn finish_storing(&mut self) -> Result<bool, Error> {
        let Some(result) = self.storing.join_next().await else { return Ok(false) };
        self.stack = match result {
            Ok(stack) => stack?,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(error) => return Err(Error::Database(error.into())),
        };
        Ok(true)
    }

    /// The row of the stack says what has come meanwhile.
    async fn after_commit(&mut self) -> Result<(), Error> {
        if self.stack.id == self.root.id {
            self.root = Arc::new(self.stack.clone());
        }
        self.again |= self.stack.generation > self.request.generation;
        self.look_for_new_messages().await
    }
}
