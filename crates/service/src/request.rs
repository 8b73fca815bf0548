//! Sends a request to a stack.

use kiln_identity::Caller;
use kiln_resource::{Action, Status};
use kiln_store::{Author, Details, Stack, StackRequest};

use crate::{Error, Service};

/// The policy rule of changes without a plan where plans are required.
pub const BYPASS: &str = "plans:bypass";

impl Service {
    /// Stores a request in the name of the caller; returns the stack after that.
    ///
    /// # Errors
    /// [`Error::Changed`], [`Error::UnderGuard`], [`Error::PlanRequired`], [`Error::TooManyOperations`] and errors of the store.
    pub(crate) async fn request(&self, caller: &Caller, stack: &Stack, request: StackRequest) -> Result<Stack, Error> {
        if stack.is_abandoned() && request.action != Action::Delete {
            // Its objects have been handed out. After another action, a delete would not know that, and delete them.
            return Err(Error::NotSupported(
                "An action on a stack that was abandoned, except to delete it,".to_owned(),
            ));
        }
        // A request to a stack that is in progress takes the place of its operation.
        if stack.parent.is_none() && stack.state.status != Status::InProgress {
            self.check_operations(caller, &stack.project).await?;
        }
        let is_guarded = self.heed_guards(stack, request.action).await?;
        if matches!(request.action, Action::Update | Action::Delete | Action::Restore) {
            self.demand_plan(caller, &request.details, is_guarded)?;
        }
        let author = Author { user_id: caller.user_id.clone(), username: caller.username.clone() };
        let stack = self.backends.store.request(stack.id, StackRequest { author: Some(author), ..request }).await?;
        begun(&stack);
        Ok(stack)
    }

    /// Refuses a change without a plan where plans are required, unless the caller may do without. `is_guarded`: a guard
    /// requires plans.
    pub(crate) fn demand_plan(&self, caller: &Caller, details: &Details, is_guarded: bool) -> Result<(), Error> {
        if !(self.options.plans_required || is_guarded) || details.planned.is_some() {
            return Ok(());
        }
        if self.policy.allows(BYPASS, caller, &caller.project_id) {
            tracing::warn!(user = caller.user_id, "a change without a plan, although plans are required");
            return Ok(());
        }
        Err(Error::PlanRequired)
    }
}

/// Logs the start of an action, in the same format as the engine logs its end.
pub(crate) fn begun(stack: &Stack) {
    let Stack { id, name, project, state, reason, .. } = stack;
    of_stack(stack);
    tracing::info!(stack = %id, name, project, %state, reason, "stack");
}

/// The request is about this stack: the lines of the log after this say so.
pub(crate) fn of_stack(stack: &Stack) {
    tracing::Span::current().record("stack", tracing::field::display(stack.id));
}
