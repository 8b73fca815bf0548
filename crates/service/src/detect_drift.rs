//! Compares a stack with its objects, which others may have changed.

use kiln_resource::Action;
use kiln_stack::LoadedStack;
use kiln_store::Stack;
use kiln_view::stack_drift::{StackDrift, drift};

use crate::{Door, Error, Guarded, Service};

impl Service {
    /// Compares the resources of a stack and of its nested stacks with their objects now; nothing is changed or stored.
    /// An empty list of names means all resources; `group/0/server` is one of a nested stack. Hidden values are masked.
    pub async fn drift(&self, stack: Stack, names: &[String]) -> Result<StackDrift, Error> {
        let view = self.view(stack).await?;
        let compared = self.compared(&view, names).await?;
        // The parameters of nested stacks get their hidden values from those of this one, or of the stacks above it.
        let hidden = self.hidden_values_of_tree(&view.stack).await?;
        Ok(Guarded::new(compared, hidden).into_shown(Door::Drift))
    }

    /// The same with hidden values. What guards ignore is no drift.
    pub(crate) async fn compared(&self, view: &LoadedStack, names: &[String]) -> Result<StackDrift, Error> {
        let mut compared = drift(view, names).await?;
        if let Some(missing) = names.iter().find(|name| compared.resource(name).is_none()) {
            return Err(Error::NoResource { resource: missing.clone(), stack: view.stack.name.clone() });
        }
        if let Some(guards) = self.placed_guards(&view.stack, Action::Update).await? {
            let now = self.backends.clock.now();
            compared.ignore(&|path, property| guards.ignoring(now, path, property).is_some());
        }
        Ok(compared)
    }
}
