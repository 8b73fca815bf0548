//! Suspends, resumes and checks a stack; cancels an update.

use kiln_identity::Caller;
use kiln_resource::{Action, Status};
use kiln_store::{Cancel, MessageBody, Stack, StackRequest};

use crate::{Error, Service};

/// Actions on a stack besides create, update and delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackAction {
    /// Suspends the resources that support it.
    Suspend,
    /// Resumes it.
    Resume,
    /// Checks the resources.
    Check,
    /// Cancels a running update with a rollback.
    CancelUpdate,
    /// Cancels a running create or update without a rollback.
    CancelWithoutRollback,
}

impl Service {
    /// Requests an action. An action that is already complete is not repeated.
    pub async fn act(&self, caller: &Caller, stack: &Stack, action: StackAction) -> Result<(), Error> {
        match action {
            StackAction::Suspend => self.settle(caller, stack, Action::Suspend).await,
            StackAction::Resume => self.settle(caller, stack, Action::Resume).await,
            StackAction::Check => self.settle(caller, stack, Action::Check).await,
            StackAction::CancelUpdate => self.cancel_update(caller, stack).await,
            StackAction::CancelWithoutRollback => self.cancel_without_rollback(stack).await,
        }
    }

    /// An action on a stack without a running operation.
    async fn settle(&self, caller: &Caller, stack: &Stack, action: Action) -> Result<(), Error> {
        if action != Action::Check {
            self.allow_types_of(caller, stack).await?;
            if stack.state.is_complete(action) {
                return Ok(());
            }
        }
        if stack.is_pending() {
            return Err(Error::Busy { stack: stack.name.clone(), action: stack.state.action });
        }
        let request = StackRequest {
            credentials: self.offered_credentials(caller, stack).await,
            if_generation: Some(stack.generation),
            ..StackRequest::new(action, self.backends.clock.now())
        };
        self.request(caller, stack, request).await?;
        Ok(())
    }

    /// As after a failure, objects that the update adopts are kept.
    async fn cancel_update(&self, caller: &Caller, stack: &Stack) -> Result<(), Error> {
        refuse_cancel(stack, &[Action::Update])?;
        let request = StackRequest::rollback(stack.generation, stack.adopts(), self.backends.clock.now());
        self.request(caller, stack, request).await?;
        Ok(())
    }

    /// Running operations are completed, no new ones are started, and the stack fails. This applies only to the current
    /// request.
    async fn cancel_without_rollback(&self, stack: &Stack) -> Result<(), Error> {
        refuse_cancel(stack, &[Action::Create, Action::Update])?;
        let cancel = Cancel { generation: Some(stack.generation), ..Cancel::default() };
        let message = self.backends.message(stack.id, None, MessageBody::Cancel(cancel));
        Ok(self.backends.store.send(&message).await?)
    }
}

/// Refuses to cancel a stack that is not in one of these actions.
fn refuse_cancel(stack: &Stack, actions: &[Action]) -> Result<(), Error> {
    let is_under_way = stack.state.status == Status::InProgress && actions.contains(&stack.state.action);
    if is_under_way {
        return Ok(());
    }
    Err(Error::NotSupported(format!("Cancelling update when stack is {}", stack.state)))
}
