//! The end of a request whose actor cannot go on: after a panic, or because the database refuses its data for good.

use std::time::Duration;

use jiff::Timestamp;
use kiln_plan::Model;
use kiln_resource::{Action, Resource, State, Status};
use kiln_stack::{Backends, export};
use kiln_store::{Batch, Error, Event, EventId, Lease, Settle, Snapshot, Stack};
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
    fail_snapshot(backends, lease, &stack, state, &reason).await?;
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
        operation: Some(stack.operation()),
        time: now,
    };
    let settle = Settle { generation: stack.generation, state, reason, deleted: false, reached: false, now };
    let batch = Batch { events: vec![event], settle: Some(settle), ..Batch::default() };
    store.commit(lease, batch).await.map(drop)
}

/// The snapshot of the request fails with it. It keeps what was saved, which is deleted with it, unless the database refuses
/// that.
async fn fail_snapshot(
    backends: &Backends,
    lease: Lease,
    stack: &Stack,
    state: State,
    reason: &str,
) -> Result<(), Error> {
    let store = &backends.store;
    let Some(id) = stack.details.snapshot.filter(|_| state.action == Action::Snapshot) else { return Ok(()) };
    let Some(snapshot) = store.snapshot(stack.id, id).await? else { return Ok(()) };
    let model = Model::new(store.resources(stack.id).await?);
    let saved = export::of_model(backends, &Stack { state, ..stack.clone() }, &model).await?;
    for data in [saved, Value::Null] {
        let failed = Snapshot { state, reason: reason.to_owned(), data, ..snapshot.clone() };
        let batch = Batch { snapshots: [failed].into_iter().collect(), ..Batch::default() };
        match store.commit(lease, batch).await {
            Err(Error::Invalid(text)) => {
                tracing::warn!(stack = %stack.id, snapshot = %id, text, "a snapshot is refused");
            }
            result => return result.map(drop),
        }
    }
    Ok(())
}

/// Ends the running operation of a row as failed; false if it has none. A later delete looks for the object of a create
/// whose call may have been made.
fn give_up(row: &mut Resource, reason: &str, now: Timestamp, call_limit: Duration) -> bool {
    let Some(running) = row.running().cloned() else { return false };
    if let Some(token) = unmarked::open_create(row) {
        let lost = unmarked::lost(&row.data, token, (now + call_limit).as_microsecond());
        row.data.insert(LOST_CREATE.to_owned(), lost);
    }
    row.data.shift_remove(UNMARKED);
    row.state = State::new(running.operation.action(), Status::Failed);
    reason.clone_into(&mut row.reason);
    row.updated = now;
    row.operation = running.given_up();
    true
}
