//! Fills a database with copies of a stack, for `bench/sized.py`, with the store's own use cases:
//!
//!     cargo run --release -p kiln-store --example copies -- URL PROJECT STACK FROM TO EVENTS
//!
//! The stack PROJECT/STACK must be settled. Copies have the numbers FROM to TO - 1, each with EVENTS events: those of the
//! stack, repeated. Every tenth belongs to PROJECT, the others to 1,000 other projects. Every hundredth is deleted, 40 days
//! ago. With 0 events, all belong to PROJECT and are in progress: their creates are accepted, and an engine that does not exist has claimed them.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for a benchmark")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kiln_resource::{Action, EngineId, EventId, ResourceId, State, Status};
use kiln_store::{
    Batch, DesiredText, Event, EventQuery, NewStack, Options, Resource, Settle, SqlStore, Stack, StackId, Store,
};
use kiln_value::Secret;
use uuid::Uuid;

const KEY: &str = "0123456789abcdef0123456789abcdef";
const WORKERS: u64 = 4;
const PROJECTS: u64 = 1_000;
const DELETED_FOR: SignedDuration = SignedDuration::from_hours(24 * 40);

struct Original {
    stack: Stack,
    text: DesiredText,
    rows: Vec<Resource>,
    events: Vec<Event>,
}

#[tokio::main]
#[expect(clippy::disallowed_methods, reason = "the clock of this machine, and random IDs")]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, project, name, from, to, events] = words.as_slice() else { panic!("URL PROJECT STACK FROM TO EVENTS") };
    let number = |word: &str| word.parse::<u64>().unwrap();
    let (from, to, events) = (number(from), number(to), number(events));
    let store = SqlStore::open(Options::new(url, Secret::new(KEY.to_owned()))).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    let stack = store.stack_by_name(project, name).await.unwrap().expect("the stack");
    let query = EventQuery { stacks: vec![stack.id], ..EventQuery::default() };
    let original = Arc::new(Original {
        text: store.desired(&stack.desired).await.unwrap(),
        rows: store.resources(stack.id).await.unwrap(),
        events: store.events(&query).await.unwrap(),
        stack,
    });
    let workers = WORKERS;
    let nobody = EngineId(Uuid::new_v4());
    let copies = (0..workers).map(|worker| {
        let (store, original) = (Arc::clone(&store), Arc::clone(&original));
        tokio::spawn(async move {
            for number in (from..to).filter(|number| number % workers == worker) {
                copy(&*store, &original, nobody, number, events).await;
            }
        })
    });
    for copy in copies.collect::<Vec<_>>() {
        copy.await.unwrap();
    }
    println!("{} stacks", to - from);
}

#[expect(clippy::disallowed_methods, reason = "the clock of this machine, and random IDs")]
async fn copy(store: &dyn Store, of: &Original, engine: EngineId, number: u64, events: u64) {
    let now = Timestamp::now();
    let id = StackId(Uuid::new_v4());
    let is_in_progress = events == 0;
    let project = if number.is_multiple_of(10) || is_in_progress {
        of.stack.project.clone()
    } else {
        format!("{:032x}", number % PROJECTS)
    };
    let new = NewStack {
        id,
        name: format!("copy-{number}"),
        project,
        parent: None,
        root: id,
        depth: 0,
        action: Action::Create,
        desired: of.text.clone(),
        disable_rollback: true,
        timeout_mins: None,
        tags: vec![format!("tag-{}", number % 7)],
        username: of.stack.username.clone(),
        user_id: of.stack.user_id.clone(),
        credentials: None,
        user_project: None,
        adopt: None,
        operation: None,
        preflight: false,
        planned: None,
        now,
    };
    let made = store.create_stack(new).await.unwrap();
    let lease = store.claim(engine, Duration::from_secs(15), &[id], 1).await.unwrap()[0];
    if is_in_progress {
        return;
    }
    let ids: HashMap<ResourceId, ResourceId> = of.rows.iter().map(|row| (row.id, ResourceId(ordered(now)))).collect();
    let mut batch = Batch::default();
    for row in &of.rows {
        batch.save.put(Resource {
            id: ids[&row.id],
            stack: id,
            requires: row.requires.iter().filter_map(|id| ids.get(id).copied()).collect(),
            physical_id: row.physical_id.as_ref().map(|_| Uuid::new_v4().to_string()),
            ..row.clone()
        });
    }
    for event in of.events.iter().cycle().take(usize::try_from(events).unwrap()) {
        let operation = Some(made.operation());
        batch.events.push(Event {
            id: EventId(ordered(now)),
            stack: id,
            root: id,
            operation,
            time: now,
            ..event.clone()
        });
    }
    // A few have failed.
    let status = if number % 1_000 == 7 { Status::Failed } else { Status::Complete };
    let is_deleted = number % 100 == 50;
    batch.settle = Some(Settle {
        generation: 1,
        state: State::new(if is_deleted { Action::Delete } else { Action::Create }, status),
        reason: of.stack.reason.clone(),
        deleted: is_deleted,
        reached: true,
        now: if is_deleted { now - DELETED_FOR } else { now },
    });
    store.commit(lease, batch).await.unwrap();
    store.release(&[lease]).await.unwrap();
}

/// An ID that begins with the time, as those of an engine.
#[expect(clippy::disallowed_methods, reason = "random IDs")]
fn ordered(time: Timestamp) -> Uuid {
    let milliseconds = u64::try_from(time.as_millisecond()).unwrap();
    uuid::Builder::from_unix_timestamp_millis(milliseconds, &rand::random()).into_uuid()
}
