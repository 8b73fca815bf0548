//! The end of a request whose actor cannot go on: after a panic, or because the database refuses its data for good.

use std::time::Duration;

use jiff::Timestamp;
use kiln_plan::Model;
use kiln_resource::{Action, LOST_CREATE, Resource, State, Status};
use kiln_stack::{Backends, export};
use kiln_store::{
    Batch, Error, Event, EventId, Lease, Message, MessageBody, MessageId, Settle, Snapshot, Stack, Timer,
};
use kiln_value::{Map, Value};

use crate::unmarked::{self, UNMARKED};

/// How long after the database has refused a row its operation is ended again.
const AGAIN: Duration = Duration::from_mins(1);

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
    give_up_all(backends, lease, &mut store.resources(stack.id).await?, &reason, call_limit).await?;
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

/// Ends the operations that the end of a request has left running, because the database refused their rows. Nobody works on
/// the rows of a stack without a request.
///
/// # Errors
///
/// Errors of the store.
pub(crate) async fn end_left(
    backends: &Backends,
    lease: Lease,
    rows: &mut [Resource],
    call_limit: Duration,
) -> Result<(), Error> {
    give_up_all(backends, lease, rows, "Internal error: the database has refused the end of the operation", call_limit)
        .await
}

/// Ends the running operations of rows as failed. A row that the database refuses stays as it is, and the stack is woken
/// later to try again.
async fn give_up_all(
    backends: &Backends,
    lease: Lease,
    rows: &mut [Resource],
    reason: &str,
    call_limit: Duration,
) -> Result<(), Error> {
    let (store, now, mut is_refused) = (&backends.store, backends.clock.now(), false);
    for row in rows {
        let mut ended = row.clone();
        if !give_up(&mut ended, reason, now, call_limit) {
            continue;
        }
        // Each in its own commit: the database may refuse one of them.
        match store.commit(lease, Batch { save: [ended.clone()].into_iter().collect(), ..Batch::default() }).await {
            Err(Error::Invalid(why)) => {
                is_refused = true;
                tracing::warn!(stack = %lease.stack, resource = row.name, text = why.to_string(), "a row is refused");
            }
            result => {
                result?;
                *row = ended;
            }
        }
    }
    if is_refused {
        // The database also judges by its own clock what is due. If that is ahead, the actor would handle the message at once.
        let (id, due) = (MessageId(backends.chance.uuid()), now.max(store.now().await?) + AGAIN);
        let body = MessageBody::Timer(Timer::default());
        let again = Message { id, stack: lease.stack, resource: None, body, due, sent: now };
        store.commit(lease, Batch { timers: vec![again], ..Batch::default() }).await?;
    }
    Ok(())
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
            Err(Error::Invalid(why)) => {
                tracing::warn!(stack = %stack.id, snapshot = %id, text = why.to_string(), "a snapshot is refused");
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
