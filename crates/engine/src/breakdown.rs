//! The end of a request whose actor cannot go on: after a panic, or because the database refuses its data for good.

use std::time::Duration;

use jiff::Timestamp;
use kiln_resource::{Operation, Phase, Resource, State, Status};
use kiln_stack::Backends;
use kiln_store::{Batch, Error, Event, EventId, Lease, Settle, Stack};
use kiln_value::{Map, Value};

use crate::step::LOST_CREATE;
use crate::unmarked::{self, UNMARKED};

/// Ends the running operations and the request as failed, so that the stack is not stuck. A stack without a request is left
/// as it is. Calls may have been in progress, up to `call_limit`: the lease must expire.
///
/// # Errors
///
/// Errors of the store.
pub(crate) async fn end(backends: &Backends, lease: Lease, call_limit: Duration, text: &str) -> Result<(), Error> {
    let store = &backends.store;
    let Some(stack) = store.stack(lease.stack).await?.filter(Stack::is_pending) else { return Ok(()) };
    let (now, reason) = (backends.clock.now(), format!("Internal error: {text}"));
    for mut row in store.resources(stack.id).await? {
        if !give_up(&mut row, &reason, now, call_limit) {
            continue;
        }
        let name = row.name.clone();
        // Each in its own commit: the database may refuse one of them.
        match store.commit(lease, Batch { save: [row].into_iter().collect(), ..Batch::default() }).await {
            Err(Error::Invalid(text)) => tracing::warn!(stack = %stack.id, resource = name, text, "a row is refused"),
            result => _ = result?,
        }
    }
    let state = State::new(stack.state.action, Status::Failed);
    let event = Event {
        id: EventId(backends.chance.uuid_of(now)),
        stack: stack.id,
        root: stack.root,
        resource_name: stack.name.clone(),
        resource_type: "OS::Heat::Stack".to_owned(),
        physical_id: Some(stack.id.to_string()),
        action: state.action.to_string(),
        status: state.status,
        reason: reason.clone(),
        properties: Value::Map(Map::new()),
        time: now,
    };
    let settle = Settle { generation: stack.generation, state, reason, deleted: false, reached: false, now };
    let batch = Batch { events: vec![event], settle: Some(settle), ..Batch::default() };
    store.commit(lease, batch).await.map(drop)
}

/// Ends the running operation of a row as failed; false if it has none. A later delete looks for the object of a create
/// whose call may have been made.
fn give_up(row: &mut Resource, reason: &str, now: Timestamp, call_limit: Duration) -> bool {
    let Some(running) = row.running().cloned() else { return false };
    if running.operation == Operation::Create
        && row.physical_id.is_none()
        && let Phase::Intent | Phase::Lost(_) = running.phase
    {
        let until = (now + call_limit).as_microsecond();
        let lost = unmarked::lost(&row.data, &running.token, until);
        row.data.insert(LOST_CREATE.to_owned(), lost);
    }
    row.data.shift_remove(UNMARKED);
    row.state = State::new(running.operation.action(), Status::Failed);
    reason.clone_into(&mut row.reason);
    row.updated = now;
    row.operation = running.given_up();
    true
}
