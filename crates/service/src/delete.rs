//! Deletes a stack.

use kiln_identity::Caller;
use kiln_store::{Details, Planned, Stack, StackRequest};

use crate::{Error, Service};

impl Service {
    /// Deletes a stack in any state.
    pub async fn delete_stack(&self, caller: &Caller, stack: &Stack) -> Result<Stack, Error> {
        self.delete_planned(caller, stack, None, None).await
    }

    /// Deletes a stack; with a version only if the tree of the stack has it. Uses up a saved plan, which is of one state of the
    /// stack: its delete replaces no other request.
    ///
    /// # Errors
    /// [`Error::StalePlan`] if the stack has changed.
    pub async fn delete_planned(
        &self,
        caller: &Caller,
        stack: &Stack,
        if_version: Option<&str>,
        planned: Option<Planned>,
    ) -> Result<Stack, Error> {
        self.allow_types_of(caller, stack).await?;
        let mut seen = stack.clone();
        // Those of a user who is gone delete nothing.
        let credentials = self.offered_credentials(caller, stack).await;
        loop {
            let request = StackRequest::delete(&seen, self.backends.clock.now());
            let details = Details { planned: planned.clone(), ..request.details };
            let request = StackRequest { credentials, details, if_version: if_version.map(str::to_owned), ..request };
            match self.request(caller, &seen, request).await {
                Ok(stack) => return Ok(stack),
                Err(Error::Changed) if if_version.is_some() || planned.is_some() => {
                    return Err(Error::StalePlan(stack.name.clone()));
                }
                // Another request came first: a delete replaces it.
                Err(Error::Changed) => {
                    let found = self.backends.store.stack(stack.id).await?;
                    seen = found.ok_or_else(|| Error::NotFound(format!("stack {}", stack.id)))?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}
