//! Forgets a resource whose object cannot be deleted.

use kiln_identity::Caller;
use kiln_resource::{Action, MessageId, Resource, Status};
use kiln_store::{Message, MessageKind, Stack};
use kiln_value::value;

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
        let (path, root) = self.path_of(&stack, name).await?;
        let now = self.backends.clock.now();
        let message = Message {
            id: MessageId(self.backends.chance.uuid()),
            stack: stack.id,
            resource: Some(name.clone()),
            kind: MessageKind::Forget,
            body: value!({
                "user_id": (&caller.user_id),
                "username": (&caller.username),
                "reason": (forget.reason.clone().unwrap_or_default()),
                "path": path,
                "region": (self.backends.clouds.region(&root)),
            }),
            due: now,
            sent: now,
        };
        Ok(self.backends.store.send(&message).await?)
    }

    /// The names of the resources from the root stack to a resource, joined with slashes, and the root stack.
    async fn path_of(&self, stack: &Stack, name: &str) -> Result<(String, Stack), Error> {
        let (mut names, mut stack) = (vec![name.to_owned()], stack.clone());
        while let Some(parent) = stack.parent.clone() {
            names.push(parent.resource_name);
            let missing = || Error::NotFound(format!("stack {}", parent.stack));
            stack = self.backends.store.stack(parent.stack).await?.ok_or_else(missing)?;
        }
        names.reverse();
        Ok((names.join("/"), stack))
    }
}
