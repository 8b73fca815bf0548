//! Marks a resource as unhealthy.

use std::collections::BTreeSet;

use kiln_identity::Caller;
use kiln_resource::Status;
use kiln_store::{HealthMark, MessageBody, Stack};

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
        self.refuse_frozen(&stack, false).await?;
        let model = self.rows_named(&stack, &mark.resource).await?;
        let (named, status) = match shown(&model, &stack, &mark.resource) {
            Some(row) => (row.name.clone(), row.state.status),
            None => self.by_physical_id(&stack, &mark.resource).await?,
        };
        // After a request, nobody works on a row: one that the database has refused may be left.
        if status == Status::InProgress && stack.is_pending() {
            return Err(Error::Busy { stack: stack.name.clone(), action: stack.state.action });
        }
        let mark = HealthMark { unhealthy: mark.unhealthy, reason: mark.reason.clone() };
        let message = self.backends.message(stack.id, Some(named), MessageBody::MarkUnhealthy(mark));
        Ok(self.backends.store.send(&message).await?)
    }

    /// The name and status of a resource without a row of this name: the one with this physical ID, or else one that the
    /// template defines.
    async fn by_physical_id(&self, stack: &Stack, id: &str) -> Result<(String, Status), Error> {
        let mut rows = self.backends.store.resources_by_physical_id(&stack.project, id).await?;
        rows.retain(|row| row.stack == stack.id);
        let mut found = Vec::new();
        for name in rows.iter().map(|row| row.name.as_str()).collect::<BTreeSet<_>>() {
            let model = self.rows_named(stack, name).await?;
            found.extend(shown(&model, stack, name).filter(|row| row.physical_id.as_deref() == Some(id)).cloned());
        }
        match found.as_slice() {
            [row] => Ok((row.name.clone(), row.state.status)),
            [] => match self.no_row(stack.clone(), id).await? {
                Error::ResourceNotAvailable(name) => Ok((name, Status::Complete)),
                error => Err(error),
            },
            _ => Err(Error::AmbiguousPhysicalId(id.to_owned())),
        }
    }
}
