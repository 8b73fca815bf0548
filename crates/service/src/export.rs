//! Exports and abandons a stack.

use kiln_identity::Caller;
use kiln_resource::Action;
use kiln_store::{Details, Stack, StackRequest};
use kiln_value::Value;

use crate::{Error, Guarded, Service};

impl Service {
    /// Rejects export and abandon unless the operator allows them.
    pub fn refuse_abandon(&self) -> Result<(), Error> {
        if self.options.abandon { Ok(()) } else { Err(Error::NotSupported("Stack Abandon".to_owned())) }
    }

    /// The data of a stack with its resources, from which it can be adopted. It contains the values of hidden
    /// parameters: only [`Door::Export`](crate::Door::Export) shows all of it.
    pub async fn export_stack(&self, stack: &Stack) -> Result<Guarded<Value>, Error> {
        self.refuse_abandon()?;
        self.exported(stack).await
    }

    async fn exported(&self, stack: &Stack) -> Result<Guarded<Value>, Error> {
        let data = kiln_stack::export(&self.backends, stack).await?;
        Ok(Guarded::new(data, self.hidden_values_of_tree(stack).await?))
    }

    /// Deletes a stack and keeps the objects of its resources, also those of nested stacks. Returns the data of the
    /// stack. While an operation is in progress, this data would be incomplete.
    pub async fn abandon_stack(&self, caller: &Caller, stack: &Stack) -> Result<Guarded<Value>, Error> {
        self.refuse_abandon()?;
        self.allow_types_of(caller, stack).await?;
        if stack.is_pending() {
            return Err(Error::Busy { stack: stack.name.clone(), action: stack.state.action });
        }
        let data = self.exported(stack).await?;
        let request = StackRequest {
            details: Details { keep_objects: true, ..Details::default() },
            if_generation: Some(stack.generation),
            ..StackRequest::new(Action::Delete, self.backends.clock.now())
        };
        self.request(caller, stack, request).await?;
        Ok(data)
    }
}
