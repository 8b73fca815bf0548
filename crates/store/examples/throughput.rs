//! Transitions per second, on SQLite (in memory and in a file) and on the servers of `KILN_TEST_DATABASES`:
//!
//! ```text
//! crates/store/tests/databases.sh cargo run --release -p kiln-store --example throughput
//! ```
//!
//! A transition is one step of a resource: the write of its row and an event.

#![expect(clippy::disallowed_methods, reason = "a measurement runs by the real clock, with fresh ids")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kiln_resource::{
    Action, Operation, OperationState, Phase, Resource, ResourceId, Running, State, Status, StoredDefinition,
};
use kiln_store::{
    Batch, DesiredText, Durability, EngineId, Event, EventId, Lease, NewStack, Options, SqlStore, Stack, StackId,
    StackQuery, Store,
};
use kiln_value::{Secret, value};
use uuid::Uuid;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Number of concurrent stacks.
const ACTORS: usize = 8;
/// Longer than the whole measurement.
const HOUR: Duration = Duration::from_hours(1);
/// Most rows and events that an engine writes in a batch.
const BATCH: usize = 3 * 768;
/// Duration of each measurement.
const SPAN: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Outcome<()> {
    let file = std::env::temp_dir().join(format!("kiln-throughput-{}.db", Uuid::new_v4()));
    let sqlite = format!("sqlite://{}", file.display());
    println!(
        "{:<34} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "", "1 actor", "8 actors", "32 a batch", "10k+20k", "lists", "claims"
    );
    println!("{:<34} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}", "database", "/s", "/s", "/s", "s", "of 50 /s", "/s");
    measure("sqlite::memory:", Durability::Process).await?;
    measure(&sqlite, Durability::Process).await?;
    measure(&sqlite, Durability::Power).await?;
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
    }
    for url in std::env::var("KILN_TEST_DATABASES").unwrap_or_default().split_whitespace() {
        measure(url, Durability::Process).await?;
    }
    Ok(())
}

async fn measure(url: &str, durability: Durability) -> Outcome<()> {
    let key = Secret::new("0123456789abcdef0123456789abcdef".to_owned());
    let store = SqlStore::open(Options { durability, ..Options::new(url, key) }).await?;
    store.migrate().await?;
    let alone = transitions(&store, 1, 1).await?;
    let actors = transitions(&store, ACTORS, 1).await?;
    let batched = transitions(&store, ACTORS, 32).await?;
    let large = large_stack(&store).await?;
    let lists = lists(&store).await?;
    let claims = claims(&store).await?;
    let kind = url.split(':').next().unwrap_or(url);
    let place = if url.contains(":memory:") { "memory" } else { "" };
    println!(
        "{:<34} {alone:>10.0} {actors:>10.0} {batched:>10.0} {:>10.2} {lists:>10.0} {claims:>10.0}",
        format!("{kind} {place} {durability:?}"),
        large.as_secs_f64(),
    );
    Ok(())
}

/// Transitions per second of several actors with a batch size.
async fn transitions(store: &SqlStore, actors: usize, batch: usize) -> Outcome<f64> {
    let mut tasks = tokio::task::JoinSet::new();
    let start = Instant::now();
    for _ in 0..actors {
        let (stack, lease) = claimed(store, &Uuid::new_v4().to_string(), Uuid::new_v4().to_string()).await?;
        let store = store.clone();
        tasks.spawn(async move {
            let rows: Vec<Resource> = (0..batch).map(|number| resource(&stack, number)).collect();
            let mut done = 0;
            while start.elapsed() < SPAN {
                let events = rows.iter().map(|row| event(&stack, row)).collect();
                store.commit(lease, Batch { save: rows.clone().into(), events, ..Batch::default() }).await?;
                done += batch;
            }
            Ok::<usize, kiln_store::Error>(done)
        });
    }
    let mut done = 0;
    while let Some(task) = tasks.join_next().await {
        done += task??;
    }
    Ok(f64::from(u32::try_from(done)?) / start.elapsed().as_secs_f64())
}

/// The time to write what the engine writes when it creates 10,000 values: the row of each once, with the events of its
/// start and end, in batches of the engine's size.
async fn large_stack(store: &SqlStore) -> Outcome<Duration> {
    let (stack, lease) = claimed(store, &Uuid::new_v4().to_string(), "large".to_owned()).await?;
    let rows: Vec<Resource> = (0..10_000).map(|number| resource(&stack, number)).collect();
    let start = Instant::now();
    for rows in rows.chunks(BATCH / 3) {
        let events = rows.iter().flat_map(|row| [event(&stack, row), event(&stack, row)]).collect();
        store.commit(lease, Batch { save: rows.to_vec().into(), events, ..Batch::default() }).await?;
    }
    Ok(start.elapsed())
}

/// Lists of 50 stacks per second.
async fn lists(store: &SqlStore) -> Outcome<f64> {
    let project = Uuid::new_v4().to_string();
    for number in 0..50 {
        claimed(store, &project, format!("stack-{number}")).await?;
    }
    let query = StackQuery { project: Some(project), ..StackQuery::default() };
    let mut tasks = tokio::task::JoinSet::new();
    let start = Instant::now();
    for _ in 0..2 {
        let (store, query) = (store.clone(), query.clone());
        tasks.spawn(async move {
            let mut done = 0;
            while start.elapsed() < SPAN {
                store.stacks(&query).await?;
                done += 1;
            }
            Ok::<u32, kiln_store::Error>(done)
        });
    }
    let mut done = 0;
    while let Some(task) = tasks.join_next().await {
        done += task??;
    }
    Ok(f64::from(done) / start.elapsed().as_secs_f64())
}

/// Claims per second of one engine, 50 at a time.
async fn claims(store: &SqlStore) -> Outcome<f64> {
    let project = Uuid::new_v4().to_string();
    for number in 0..500 {
        store.create_stack(stack(&project, format!("s{number}"))).await?;
    }
    let (engine, mut claimed) = (EngineId(Uuid::new_v4()), 0_u32);
    let start = Instant::now();
    loop {
        let leases = store.claim(engine, HOUR, &[], 50).await?;
        if leases.is_empty() {
            return Ok(f64::from(claimed) / start.elapsed().as_secs_f64());
        }
        claimed += u32::try_from(leases.len())?;
    }
}

async fn claimed(store: &SqlStore, project: &str, name: String) -> Outcome<(Stack, Lease)> {
    let made = store.create_stack(stack(project, name)).await?;
    let leases = store.claim(EngineId(Uuid::new_v4()), HOUR, &[made.id], 1).await?;
    Ok((made, *leases.first().ok_or("no lease")?))
}

fn stack(project: &str, name: String) -> NewStack {
    let id = StackId(Uuid::new_v4());
    let text = || "{}".to_owned();
    NewStack {
        username: "demo".to_owned(),
        user_id: "0123456789abcdef".to_owned(),
        ..NewStack::new(
            id,
            name,
            project.to_owned(),
            DesiredText { template: text(), environment: text(), files: text() },
            Timestamp::now(),
        )
    }
}

fn resource(stack: &Stack, number: usize) -> Resource {
    let (id, name) = (ResourceId(Uuid::new_v4()), format!("resource_{number}"));
    let mut definition = StoredDefinition::of_type("OS::Heat::Value");
    definition.properties =
        value!({"type": "string", "value": "some value of some length"}).as_map().cloned().unwrap_or_default();
    Resource {
        physical_id: Some(Uuid::new_v4().to_string()),
        state: State::new(Action::Create, Status::InProgress),
        reason: "state changed".to_owned(),
        operation: Running {
            operation: Operation::Create,
            definition: None,
            phase: Phase::Intent,
            token: id.to_string(),
            attempt: 0,
            requires: Vec::new(),
            afterwards: OperationState::Idle,
        }
        .into(),
        definition: Some(Arc::new(definition)),
        generation: 1,
        ..Resource::new(stack.id, id, &name, "OS::Heat::Value", stack.created)
    }
}

fn event(stack: &Stack, row: &Resource) -> Event {
    Event {
        operation: None,
        id: EventId(Uuid::new_v4()),
        stack: stack.id,
        root: stack.root,
        resource_name: row.name.clone(),
        resource_type: row.resource_type.clone(),
        physical_id: row.physical_id.clone(),
        action: "CREATE".to_owned(),
        status: Status::InProgress,
        reason: row.reason.clone(),
        properties: value!({"type": "string", "value": "some value of some length"}),
        time: stack.created,
    }
}
