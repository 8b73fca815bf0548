//! Suspends, resumes and checks a stack; cancels an update.

use kiln_identity::Caller;
use kiln_resource::{Action, MessageId, Status};
use kiln_store::{Message, MessageKind, Stack, StackRequest};
use kiln_value::value;

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
    /// Ends a running create or update where it is.
    CancelWithoutRollback,
}

impl Service {
    /// Asks for an action. What has been reached already is not done again.
    pub async fn act(&self, caller: &Caller, stack: &Stack, action: StackAction) -> Result<(), Error> {
        match action {
            StackAction::Suspend => self.settle(caller, stack, Action::Suspend).await,
            StackAction::Resume => self.settle(caller, stack, Action::Resume).await,
            StackAction::Check => self.settle(caller, stack, Action::Check).await,
            StackAction::CancelUpdate => self.cancel_update(stack).await,
            StackAction::CancelWithoutRollback => self.cancel_without_rollback(stack).await,
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
        refuse_cancel(stack, &[Action::Update])?;
        self.request(stack, Action::Rollback).await
    }

    /// What is under way comes to its end, nothing new begins, and the stack fails. It ends this request and no later
    /// one.
    async fn cancel_without_rollback(&self, stack: &Stack) -> Result<(), Error> {
        refuse_cancel(stack, &[Action::Create, Action::Update])?;
        let now = self.backends.clock.now();
        let message = Message {
            id: MessageId(self.backends.chance.uuid()),
            stack: stack.id,
            resource: None,
            kind: MessageKind::Cancel,
            body: value!({ "generation": (stack.generation), "interrupt": false }),
            due: now,
            sent: now,
        };
        Ok(self.backends.store.send(&message).await?)
    }

    async fn request(&self, stack: &Stack, action: Action) -> Result<(), Error> {
        let request = StackRequest {
            if_generation: Some(stack.generation),
            ..StackRequest::new(action, self.backends.clock.now())
        };
        begun(&self.backends.store.request(stack.id, request).await?);
        Ok(())
    }
}

/// Tells the log what a stack begins to do, in the words in which the engine tells how it ends.
pub(crate) fn begun(stack: &Stack) {
    let Stack { id, name, project, state, reason, .. } = stack;
    tracing::info!(stack = %id, name, project, %state, reason, "stack");
}

/// Refuses to cancel what does none of these actions now.
fn refuse_cancel(stack: &Stack, actions: &[Action]) -> Result<(), Error> {
    let is_under_way = stack.state.status == Status::InProgress && actions.contains(&stack.state.action);
    if is_under_way {
        return Ok(());
    }
    Err(Error::NotSupported(format!("Cancelling update when stack is {}", stack.state)))
}
