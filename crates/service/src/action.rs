//! Suspends, resumes and checks a stack; cancels an update.

use kiln_identity::Caller;
use kiln_resource::{Action, State, Status};
use kiln_store::{Stack, StackRequest};

use crate::{Error, Service};

/// What can be done with a stack besides making, changing and deleting it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackAction {
    /// Suspends what can be suspended.
    Suspend,
    /// Resumes it.
    Resume,
    /// Checks whether everything is as it should be.
    Check,
    /// Ends a running update by a rollback.
    CancelUpdate,
}

impl Service {
    /// Asks for an action. What has been reached already is not done again.
    pub async fn act(&self, caller: &Caller, stack: &Stack, action: StackAction) -> Result<(), Error> {
        match action {
            StackAction::Suspend => self.settle(caller, stack, Action::Suspend).await,
            StackAction::Resume => self.settle(caller, stack, Action::Resume).await,
            StackAction::Check => self.settle(caller, stack, Action::Check).await,
            StackAction::CancelUpdate => self.cancel_update(stack).await,
        }
    }

    /// An action on a stack that rests.
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
        self.request(stack, action).await
    }

    async fn cancel_update(&self, stack: &Stack) -> Result<(), Error> {
        if stack.state != State::new(Action::Update, Status::InProgress) {
            return Err(Error::NotSupported(format!("Cancelling update when stack is {}", stack.state)));
        }
        self.request(stack, Action::Rollback).await
    }

    async fn request(&self, stack: &Stack, action: Action) -> Result<(), Error> {
        let request = StackRequest {
            if_generation: Some(stack.generation),
            ..StackRequest::new(action, self.backends.clock.now())
        };
        self.backends.store.request(stack.id, request).await?;
        Ok(())
    }
}
