//! Marks of users: a resource is unhealthy, and the next update replaces it (docs/heat-behaviour.md §11).

use kiln_plan::{Event, Model};
use kiln_resource::StackId;
use kiln_store::{Error, Message, MessageBody};

use crate::backends::Backends;

/// Heat's default reason.
const REASON: &str = "state changed by resource_mark_unhealthy api";

/// The marks of a stack that its engine has not handled.
pub async fn waiting(backends: &Backends, stack: StackId) -> Result<Vec<Message>, Error> {
    let mut messages = backends.store.inbox(stack, backends.clock.now()).await?;
    messages.retain(|message| matches!(message.body, MessageBody::MarkUnhealthy(_)));
    Ok(messages)
}

/// The event of a message that marks a resource. `None` for other messages, unknown resources, and resources with a
/// running operation, which are marked after it.
pub fn event(message: &Message, model: &Model) -> Option<Event> {
    let MessageBody::MarkUnhealthy(mark) = &message.body else { return None };
    let row = model.current(message.resource.as_deref()?).filter(|row| row.running().is_none())?;
    let reason = mark.reason.as_deref().filter(|reason| !reason.is_empty()).unwrap_or(REASON);
    Some(Event::Marked { row: row.id, healthy: !mark.unhealthy, reason: reason.to_owned() })
}

/// The event of a mark that a preview assumes.
pub fn assumed(resource: &str, model: &Model) -> Option<Event> {
    let row = model.current(resource).filter(|row| row.running().is_none())?;
    Some(Event::Marked { row: row.id, healthy: false, reason: REASON.to_owned() })
}
