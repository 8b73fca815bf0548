//! Deletes a stack.

use kiln_identity::Caller;
use kiln_resource::Action;
use kiln_store::{Stack, StackRequest};

use crate::action::begun;
use crate::{Error, Service};

impl Service {
    /// Deletes a stack in any state.
    pub async fn delete_stack(&self, caller: &Caller, stack: &Stack) -> Result<Stack, Error> {
        self.allow_types_of(caller, stack).await?;
        let request = StackRequest::new(Action::Delete, self.backends.clock.now());
        let stack = self.backends.store.request(stack.id, request).await?;
        begun(&stack);
        Ok(stack)
    }
}
