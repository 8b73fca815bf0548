//! Marks a resource as unhealthy.

use kiln_identity::Caller;
use kiln_resource::{MessageId, Status};
use kiln_store::{Message, MessageKind, Stack};
use kiln_value::value;

use crate::signal::shown;
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
        let model = self.rows_named(&stack, &mark.resource).await?;
        let (named, status) = match shown(&model, &stack, &mark.resource) {
            Some(row) => (row.name.clone(), row.state.status),
            None => self.by_physical_id(&stack, &mark.resource).await?,
        };
        if status == Status::InProgress {
            return Err(Error::Busy { stack: stack.name.clone(), action: stack.state.action });
        }
        let now = self.backends.clock.now();
        let message = Message {
            id: MessageId(self.backends.chance.uuid()),
            stack: stack.id,
            resource: Some(named),
            kind: MessageKind::MarkUnhealthy,
            body: value!({ "mark_unhealthy": (mark.unhealthy), "reason": (mark.reason.clone()) }),
            due: now,
            sent: now,
        };
        Ok(self.backends.store.send(&message).await?)
    }

    /// The name and status of a resource without a row of this name: one that the template defines, or else the one with
    /// this physical ID.
    async fn by_physical_id(&self, stack: &Stack, id: &str) -> Result<(String, Status), Error> {
        let view = self.view(stack.clone()).await?;
        if view.blueprint.definitions().contains_key(id) {
            return Ok((id.to_owned(), Status::Complete));
        }
        let mut rows = view.resources().filter(|row| row.physical_id.as_deref() == Some(id));
        match (rows.next(), rows.next()) {
            (Some(_), Some(_)) => Err(Error::AmbiguousPhysicalId(id.to_owned())),
            (Some(row), None) => Ok((row.name.clone(), row.state.status)),
            _ => Err(Error::NoResource { resource: id.to_owned(), stack: stack.name.clone() }),
        }
    }
}
