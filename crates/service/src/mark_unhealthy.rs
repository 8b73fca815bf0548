//! Marks a resource as unhealthy.

use kiln_engine::View;
use kiln_identity::Caller;
use kiln_store::Stack;

use crate::{Error, Service};

/// A mark on a resource.
#[derive(Clone, Debug)]
pub struct MarkUnhealthy {
    /// Logical name of the resource.
    pub resource: String,
    /// Whether it is unhealthy; else it is well again.
    pub unhealthy: bool,
    /// Why.
    pub reason: Option<String>,
}

impl Service {
    /// Marks a resource. The request is checked in full; the mark itself comes with a later issue.
    pub async fn mark_unhealthy(&self, caller: &Caller, stack: Stack, mark: &MarkUnhealthy) -> Result<(), Error> {
        self.refuse_stack_user(caller)?;
        let view = View::of(&self.backends, stack).await?;
        let waits = || view.blueprint.definitions().contains_key(&mark.resource);
        if view.resource(&mark.resource).is_none() && !waits() {
            return Err(Error::NoResource { resource: mark.resource.clone(), stack: view.stack.name.clone() });
        }
        Err(Error::NotImplemented("Marking a resource unhealthy"))
    }
}
