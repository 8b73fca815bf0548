//! Forgets a resource whose object cannot be deleted.

use kiln_identity::Caller;
use kiln_resource::{Action, Parting, Resource, Status};
use kiln_stack::load;
use kiln_store::{MessageBody, Stack};

use crate::{Error, Service};

/// A resource to forget.
#[derive(Clone, Debug)]
pub struct Forget {
    /// Logical name of the resource.
    pub resource: String,
    /// The reason, for the list of orphans.
    pub reason: Option<String>,
}

impl Service {
    /// Forgets a resource whose delete failed or is in progress: its row ends, its object stays in the cloud and is
    /// written to the list of orphans. A delete in progress is interrupted first, and if it succeeds nothing is
    /// forgotten. The engine of the stack does this, soon after the request is accepted.
    pub async fn forget(&self, caller: &Caller, stack: Stack, forget: &Forget) -> Result<(), Error> {
        self.refuse_stack_user(caller)?;
        self.refuse_frozen(&stack, false).await?;
        let name = &forget.resource;
        // Only rows are read: this also works if the stored template cannot be read any more.
        let mut rows = self.backends.store.resources(stack.id).await?;
        rows.retain(|row| row.name == *name);
        if rows.is_empty() {
            return Err(Error::NoResource { resource: name.clone(), stack: stack.name });
        }
        let deletes = |row: &&Resource| row.state.action == Action::Delete && row.state.status != Status::Complete;
        let Some(row) = rows.iter().find(deletes) else {
            let states: Vec<String> = rows.iter().map(|row| row.state.to_string()).collect();
            let states = states.join(", ");
            return Err(Error::NotSupported(format!(
                "Forgetting resource {name} in state {states}: delete it first; this"
            )));
        };
        if row.child.is_some() {
            let what = format!("Forgetting resource {name}, which is a nested stack");
            return Err(Error::NotSupported(format!("{what}: forget the resource in it that cannot be deleted; this")));
        }
        let store = &*self.backends.store;
        let mut path = load::place(store, &stack).await?;
        path.push(name.clone());
        let root = load::stack(store, stack.root).await?;
        let parting = Parting {
            user_id: caller.user_id.clone(),
            username: caller.username.clone(),
            reason: forget.reason.clone().unwrap_or_default(),
            path: path.join("/"),
            region: self.backends.clouds.region(&root),
        };
        let message = self.backends.message(stack.id, Some(name.clone()), MessageBody::Forget(parting));
        Ok(store.send(&message).await?)
    }
}
