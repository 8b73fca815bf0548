//! Credentials of stacks.

use kiln_identity::{Caller, DelegateError};
use kiln_resource::{CredentialsId, Status};
use kiln_stack::UNUSED_AFTER;
use kiln_store::Stack;

use crate::{Error, Service};

/// Plans with a mark that another trust already has: one in ten million.
const ATTEMPTS: u32 = 3;

impl Service {
    /// Creates the credentials of a stack. They are recorded first; if no stack refers to them, the engine's sweep
    /// revokes them after a while, whatever happens here.
    pub(crate) async fn delegate(&self, caller: &Caller) -> Result<CredentialsId, Error> {
        let (store, clock) = (&self.backends.store, &self.backends.clock);
        let begun = clock.monotonic();
        for _ in 0..ATTEMPTS {
            let seed = self.backends.chance.uuid().as_u64_pair().0;
            let plan = self.identity.plan(caller, seed)?;
            let id = store.plan_credentials(&plan.to_stored()).await?;
            match self.identity.delegate(caller, &plan).await {
                Ok(credentials) => {
                    store.keep_credentials(id, &credentials).await?;
                    // The sweep may be about to revoke them, because this took so long.
                    if clock.monotonic().saturating_sub(begun) > UNUSED_AFTER / 2 {
                        return Err(DelegateError::Unavailable("timeout".to_owned()).into());
                    }
                    return Ok(id);
                }
                Err(error @ DelegateError::Unavailable(_)) => return Err(error.into()),
                // Nothing was created, so nothing must be found by the mark, which belongs to another trust.
                Err(error) => {
                    store.delete_credentials(id).await?;
                    if error != DelegateError::Taken {
                        return Err(error.into());
                    }
                }
            }
        }
        Err(DelegateError::Taken.into())
    }

    /// The same, and the next stacks of the caller share them.
    pub(crate) async fn new_credentials(&self, caller: &Caller) -> Result<CredentialsId, Error> {
        let id = self.delegate(caller).await?;
        self.shared.offer(caller, id, self.backends.clock.monotonic());
        Ok(id)
    }

    /// As [`Service::renewed_credentials`], for actions that do not require the caller's own permissions: without them, the
    /// action is done with the current credentials.
    pub(crate) async fn offered_credentials(&self, caller: &Caller, stack: &Stack) -> Option<CredentialsId> {
        match self.renewed_credentials(caller, stack).await {
            Ok(renewed) => renewed,
            Err(error) => {
                tracing::info!(stack = %stack.id, user = caller.user_id, %error, "the credentials of the stack are kept");
                None
            }
        }
    }

    /// Credentials that replace those of a stack, if another user than the current one updates it
    /// (docs/heat-behaviour.md §19), or if the current ones cannot be read. For a stack that failed, also if they do not
    /// work any more, for example because the user has deleted the trust.
    pub(crate) async fn renewed_credentials(
        &self,
        caller: &Caller,
        stack: &Stack,
    ) -> Result<Option<CredentialsId>, Error> {
        // A stack must not get the permissions of an administrator of another project.
        if stack.parent.is_some() || stack.project != caller.project_id {
            return Ok(None);
        }
        if let Some(id) = stack.credentials {
            use kiln_store::Error as Stored;
            match self.backends.store.credentials(id).await {
                Ok(stored) => {
                    // Credentials without a user were created for the owner of the stack.
                    let made_it = || stack.user_id == caller.user_id;
                    if self.identity.acts_for(caller, &stored).unwrap_or_else(made_it)
                        && (stack.state.status != Status::Failed || self.identity.works(&stored).await)
                    {
                        return Ok(None);
                    }
                }
                Err(Stored::NotFound(_) | Stored::Damaged(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.delegate(caller).await.map(Some)
    }
}
