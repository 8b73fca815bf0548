//! Sends a request to a stack.

use kiln_identity::Caller;
use kiln_store::{Author, Stack, StackId, StackRequest};

use crate::Service;

impl Service {
    /// Stores a request in the name of the caller; returns the stack after that.
    ///
    /// # Errors
    /// Errors of the store.
    pub(crate) async fn request(
        &self,
        caller: &Caller,
        stack: StackId,
        request: StackRequest,
    ) -> Result<Stack, kiln_store::Error> {
        let author = Author { user_id: caller.user_id.clone(), username: caller.username.clone() };
        let stack = self.backends.store.request(stack, StackRequest { author: Some(author), ..request }).await?;
        begun(&stack);
        Ok(stack)
    }
}

/// Logs the start of an action, in the same format as the engine logs its end.
pub(crate) fn begun(stack: &Stack) {
    let Stack { id, name, project, state, reason, .. } = stack;
    tracing::info!(stack = %id, name, project, %state, reason, "stack");
}
