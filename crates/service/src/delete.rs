//! Deletes a stack.

use kiln_identity::Caller;
use kiln_store::Error::Changed;
use kiln_store::{Stack, StackRequest};

use crate::{Error, Service};

impl Service {
    /// Deletes a stack in any state.
    pub async fn delete_stack(&self, caller: &Caller, stack: &Stack) -> Result<Stack, Error> {
        self.delete_planned(caller, stack, None).await
    }

    /// Deletes a stack; with the version of a plan only if the stack has not changed since.
    pub async fn delete_planned(&self, caller: &Caller, stack: &Stack, plan: Option<&str>) -> Result<Stack, Error> {
        self.allow_types_of(caller, stack).await?;
        let mut seen = stack.clone();
        // Those of a user who is gone delete nothing.
        let credentials = self.offered_credentials(caller, stack).await;
        if let Some(shown) = plan
            && *shown != self.version_of(stack).await?
        {
            return Err(Error::StalePlan(stack.name.clone()));
        }
        loop {
            let request = StackRequest { credentials, ..StackRequest::delete(&seen, self.backends.clock.now()) };
            match self.request(caller, stack.id, request).await {
                Ok(stack) => return Ok(stack),
                Err(Changed(_)) if plan.is_some() => return Err(Error::StalePlan(stack.name.clone())),
                // Another request came first: a delete replaces it.
                Err(Changed(_)) => {
                    let found = self.backends.store.stack(stack.id).await?;
                    seen = found.ok_or_else(|| Error::NotFound(format!("stack {}", stack.id)))?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
