//! Marks a resource as unhealthy.

use kiln_identity::Caller;
use kiln_resource::{MessageId, Resource, Status};
use kiln_stack::LoadedStack;
use kiln_store::{Message, MessageKind, Stack};
use kiln_value::value;

use crate::{Error, Service};

/// A health mark for a resource.
#[derive(Clone, Debug)]
pub struct MarkUnhealthy {
    /// Logical name of the resource or, if no resource has this name, its physical ID.
    pub resource: String,
    /// Whether it is unhealthy; otherwise it is healthy again.
    pub unhealthy: bool,
    /// The reason.
    pub reason: Option<String>,
}

impl Service {
    /// Marks a resource, which is then replaced by the next update (docs/heat-behaviour.md §11). The engine of the
    /// stack executes the mark, immediately if no operation is running on the resource.
    pub async fn mark_unhealthy(&self, caller: &Caller, stack: Stack, mark: &MarkUnhealthy) -> Result<(), Error> {
        self.refuse_stack_user(caller)?;
        let view = self.view(stack).await?;
        let (row, stack) = (find(&view, &mark.resource)?, &view.stack);
        if row.is_some_and(|row| row.state.status == Status::InProgress) {
            return Err(Error::Busy { stack: stack.name.clone(), action: stack.state.action });
        }
        let now = self.backends.clock.now();
        let message = Message {
            id: MessageId(self.backends.chance.uuid()),
            stack: stack.id,
            resource: Some(row.map_or(&mark.resource, |row| &row.name).clone()),
            kind: MessageKind::MarkUnhealthy,
            body: value!({ "mark_unhealthy": (mark.unhealthy), "reason": (mark.reason.clone()) }),
            due: now,
            sent: now,
        };
        Ok(self.backends.store.send(&message).await?)
    }
}

/// The row with a name or ID; `None` for a resource without a row.
fn find<'a>(view: &'a LoadedStack, named: &str) -> Result<Option<&'a Resource>, Error> {
    if let Some(row) = view.resource(named) {
        return Ok(Some(row));
    }
    if view.blueprint.definitions().contains_key(named) {
        return Ok(None);
    }
    let mut rows = view.resources().filter(|row| row.physical_id.as_deref() == Some(named));
    match (rows.next(), rows.next()) {
        (Some(_), Some(_)) => Err(Error::AmbiguousPhysicalId(named.to_owned())),
        (Some(row), None) => Ok(Some(row)),
        _ => Err(Error::NoResource { resource: named.to_owned(), stack: view.stack.name.clone() }),
    }
}
