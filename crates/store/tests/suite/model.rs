//! The model in memory and SQLite compared: the same generated calls must have the same results.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use kiln_resource::{Action, State, Status};
use kiln_store::{
    Batch, Cancel, CredentialsId, Error, Event, EventId, EventQuery, Lease, MemoryStore, Message, MessageBody,
    MessageId, NewStack, OperationId, OperationQuery, Operations, Parent, Resource, ResourceId, Retention, Settle,
    Sort, SortKey, SqlStore, StackId, StackQuery, StackRequest, Store, Timer,
};
use kiln_value::{Secret, Value, value};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use uuid::Uuid;

use crate::bed::options;
use crate::make::{TTL, at, engine, stack, text};

const SEEDS: u64 = 12;
const STEPS: usize = 150;
const ACTIONS: [Action; 5] = [Action::Update, Action::Delete, Action::Check, Action::Rollback, Action::Suspend];

/// Random numbers and created objects.
struct World {
    rng: StdRng,
    stacks: Vec<StackId>,
    rows: Vec<Resource>,
    messages: Vec<MessageId>,
    leases: Vec<Lease>,
    /// Of the model and of the database.
    credentials: Vec<(CredentialsId, CredentialsId)>,
}

/// The results of the model and of the database.
struct Pair {
    model: MemoryStore,
    sql: SqlStore,
}

/// A result to compare: an error by its kind.
fn answer<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{error:?}").split('(').next().unwrap_or_default().to_owned(),
    }
}

impl World {
    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        of.choose(&mut self.rng).cloned()
    }

    fn uuid(&mut self) -> Uuid {
        Uuid::from_u128(self.rng.random())
    }

    fn stack(&mut self) -> StackId {
        let known = self.stacks.clone();
        match self.pick(&known) {
            Some(id) if !self.chance(10) => id,
            _ => StackId(self.uuid()),
        }
    }

    fn new_stack(&mut self, parent: Option<StackId>) -> NewStack {
        let id = if parent.is_none() { self.stack() } else { StackId(self.uuid()) };
        self.stacks.push(id);
        let name = format!("s{}", self.rng.random_range(0..6));
        let resource = ResourceId(self.uuid());
        NewStack {
            id,
            root: parent.unwrap_or(id),
            parent: parent.map(|stack| Parent { stack, resource, resource_name: "r".into() }),
            operation: self.chance(50).then(|| OperationId(self.uuid())),
            tags: if self.chance(50) { vec!["x".into(), "x".into(), name.clone()] } else { Vec::new() },
            now: at(self.rng.random_range(0..50)),
            ..stack(&name)
        }
    }

    fn request(&mut self) -> StackRequest {
        let action = self.pick(&ACTIONS).unwrap_or(Action::Check);
        let mut request = StackRequest::new(action, at(self.rng.random_range(50..90)));
        if self.chance(60) {
            request.desired = Some(text(&format!("v{}", self.rng.random_range(0..5))));
        }
        if self.chance(20) {
            request.if_generation = Some(self.rng.random_range(1..4));
        }
        if self.chance(30) {
            request.details.operation = Some(OperationId(self.uuid()));
        }
        if self.chance(20) {
            request.tags = Some(vec!["y".into()]);
        }
        request
    }

    fn message(&mut self, stack: StackId) -> Message {
        let old = self.messages.clone();
        let id = match self.pick(&old) {
            Some(id) if self.chance(20) => id,
            _ => MessageId(self.uuid()),
        };
        self.messages.push(id);
        let bodies = [MessageBody::Signal(value!({"a": 1})), MessageBody::Timer(Timer::default())];
        let body = self.pick(&bodies).unwrap_or(MessageBody::Cancel(Cancel::default()));
        // Long ago or far in the future, because the clocks differ slightly.
        let due = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(if self.chance(70) { 10 } else { 1_000_000 });
        let sent = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(self.rng.random_range(5..15));
        Message { id, stack, resource: None, body, due, sent }
    }

    fn resource(&mut self, stack: StackId) -> Resource {
        let old = self.rows.clone();
        let mut row = match self.pick(&old) {
            Some(row) if self.chance(40) => row,
            _ => Resource::new(stack, ResourceId(self.uuid()), "r", "T", at(1)),
        };
        row.reason = format!("reason {}", self.rng.random_range(0..99));
        self.rows.push(row.clone());
        row
    }

    fn event(&mut self, stack: StackId) -> Event {
        Event {
            id: EventId(self.uuid()),
            stack,
            root: stack,
            resource_name: format!("r{}", self.rng.random_range(0..3)),
            resource_type: "T".into(),
            physical_id: None,
            action: "CREATE".into(),
            status: self.pick(&[Status::Failed, Status::Complete]).unwrap_or(Status::InProgress),
            reason: String::new(),
            properties: Value::Null,
            operation: None,
            time: at(7),
        }
    }

    fn batch(&mut self, stack: StackId) -> Batch {
        let mut batch = Batch::default();
        let generation = self.rng.random_range(1..4);
        let state = State::new(
            self.pick(&ACTIONS).unwrap_or(Action::Check),
            self.pick(&[Status::Complete, Status::Failed]).unwrap_or(Status::Failed),
        );
        for _ in 0..self.rng.random_range(0..3) {
            batch.save.put(self.resource(stack));
            batch.events.push(self.event(stack));
        }
        let (rows, messages) = (self.rows.clone(), self.messages.clone());
        batch.remove.extend(self.pick(&rows).filter(|_| self.chance(20)).map(|row| row.id));
        batch.handled.extend(self.pick(&messages).filter(|_| self.chance(50)));
        if self.chance(15) {
            batch.children.push(self.new_stack(Some(stack)));
        }
        if self.chance(20) {
            batch.requests.push((self.stack(), self.request()));
        }
        if self.chance(20) {
            batch.timers.push(self.message(stack));
        }
        if self.chance(20) {
            let to = self.stack();
            batch.send.push(self.message(to));
        }
        if self.chance(15) {
            batch.rollback = Some(StackRequest::rollback(generation, false, at(self.rng.random_range(50..90))));
        }
        if self.chance(35) {
            let deleted = self.chance(25);
            let reached = self.chance(50);
            let now = at(self.rng.random_range(40..120));
            batch.settle = Some(Settle { generation, state, reason: "settled".into(), deleted, reached, now });
        }
        batch
    }

    async fn step(&mut self, pair: &Pair) -> (String, String, String) {
        let Pair { model, sql } = pair;
        let leases = self.leases.clone();
        match self.rng.random_range(0..100) {
            0..15 => {
                let mut new = self.new_stack(None);
                let known = self.credentials.clone();
                let credentials = self.pick(&known).filter(|_| self.chance(30));
                new.credentials = credentials.map(|(model, _)| model);
                let on_model = model.create_stack(new.clone()).await.map(|stack| stack.generation);
                new.credentials = credentials.map(|(_, sql)| sql);
                let on_sql = sql.create_stack(new.clone()).await.map(|stack| stack.generation);
                (format!("create {new:?}"), answer(on_model), answer(on_sql))
            }
            15..30 => {
                let (id, request) = (self.stack(), self.request());
                let on_model = model.request(id, request.clone()).await;
                let on_sql = sql.request(id, request.clone()).await;
                (format!("{request:?} to {id}"), answer(on_model.map(plain)), answer(on_sql.map(plain)))
            }
            30..38 => {
                let to = self.stack();
                let message = self.message(to);
                (format!("{message:?}"), answer(model.send(&message).await), answer(sql.send(&message).await))
            }
            38..55 => {
                let (owner, limit) = (engine(), self.rng.random_range(0..4));
                let only = if self.chance(30) { vec![self.stack(), self.stack()] } else { Vec::new() };
                let on_model = model.claim(owner, TTL, &only, limit).await;
                let on_sql = sql.claim(owner, TTL, &only, limit).await;
                self.leases.extend(on_sql.iter().flatten());
                (format!("claim {limit} of {only:?}"), answer(on_model), answer(on_sql))
            }
            55..65 => {
                let some: Vec<Lease> = leases.into_iter().filter(|_| self.chance(30)).collect();
                let on_model = model.release(&some).await;
                (format!("release {some:?}"), answer(on_model), answer(sql.release(&some).await))
            }
            65..70 => {
                let Some(owner) = self.pick(&leases).map(|lease| lease.owner) else { return Default::default() };
                let on_model = model.renew(owner, TTL, &leases).await;
                (format!("renew of {owner}"), answer(on_model), answer(sql.renew(owner, TTL, &leases).await))
            }
            70..92 => {
                let Some(lease) = self.pick(&leases) else { return Default::default() };
                let batch = self.batch(lease.stack);
                let on_model = model.commit(lease, batch.clone()).await;
                let on_sql = sql.commit(lease, batch.clone()).await;
                (format!("commit {batch:?}"), answer(on_model.map(plain)), answer(on_sql.map(plain)))
            }
            92..96 => {
                let plan = Secret::new("{}".to_owned());
                let (on_model, on_sql) = (model.plan_credentials(&plan).await, sql.plan_credentials(&plan).await);
                let (on_model, on_sql) = (on_model.unwrap(), on_sql.unwrap());
                self.credentials.push((on_model, on_sql));
                let hour = std::time::Duration::from_hours(1);
                let on_model = model.unused_credentials(hour, 100).await.unwrap().len();
                let on_sql = sql.unused_credentials(hour, 100).await.unwrap().len();
                ("credentials".to_owned(), on_model.to_string(), on_sql.to_string())
            }
            _ => {
                let before = at(self.rng.random_range(40..120));
                let retention = Retention { deleted_before: before, operations: 2 };
                let on_model =
                    (model.forget(&retention).await, model.forget_events(12, 0).await.map(|purge| purge.deleted));
                let on_sql = (sql.forget(&retention).await, sql.forget_events(12, 0).await.map(|purge| purge.deleted));
                (format!("{retention:?}"), format!("{on_model:?}"), format!("{on_sql:?}"))
            }
        }
    }

    /// The whole visible state.
    async fn look(&mut self, store: &dyn Store) -> Vec<String> {
        let list = StackQuery { nested: true, deleted: true, ..StackQuery::default() };
        let stacks = store.stacks(&list).await.unwrap();
        let keys = vec![SortKey::Status, SortKey::Updated];
        let sorted = StackQuery {
            sort: Some(Sort { keys, descending: true }),
            marker: stacks.get(stacks.len() / 2).map(|stack| stack.id),
            tags: vec!["x".into()],
            ..list
        };
        let stacks_of = stacks.iter().map(|stack| stack.id).collect::<Vec<_>>();
        let mut seen =
            vec![format!("{:?}", store.stacks(&sorted).await.unwrap().into_iter().map(plain).collect::<Vec<_>>())];
        for stack in stacks {
            let id = stack.id;
            seen.push(format!("{:?}", plain(stack)));
            seen.push(format!("{:?}", store.resources(id).await.unwrap()));
            seen.push(format!("{:?}", store.resources_and_writes(id).await.unwrap()));
            seen.push(format!("{:?}", store.children(id).await.unwrap()));
            seen.push(format!("{:?}", store.count_resources(id).await.unwrap()));
            seen.push(format!("{:?}", store.inbox(id, at(0)).await.unwrap()));
            let query = EventQuery { stacks: vec![id], descending: true, ..EventQuery::default() };
            let events: Vec<Event> = store.events(&query).await.unwrap();
            seen.push(format!("{:?}", events.into_iter().map(nameless).collect::<Vec<_>>()));
        }
        for root in stacks_of {
            let mut query = OperationQuery { of: Operations::OfTree(root), marker: None, limit: None };
            let operations = store.operations(&query).await.unwrap();
            query.marker = operations.get(operations.len() / 2).map(|operation| operation.id);
            query.of = Operations::Revisions(root);
            let revisions = store.operations(&query).await.unwrap();
            let one = store.revision(root, 2).await.unwrap();
            seen.push(format!("{operations:?} {revisions:?} {one:?}"));
        }
        seen
    }
}

/// Credentials have different IDs.
fn plain(stack: kiln_store::Stack) -> kiln_store::Stack {
    kiln_store::Stack { credentials: stack.credentials.map(|_| CredentialsId(Uuid::nil())), ..stack }
}

/// Events of requests too.
fn nameless(event: Event) -> Event {
    let id = if event.is_of_stack() { EventId(Uuid::nil()) } else { event.id };
    Event { id, ..event }
}

#[tokio::test]
async fn the_model_answers_as_a_database_does() {
    for seed in 0..SEEDS {
        let sql = SqlStore::open(options("sqlite::memory:")).await.unwrap();
        sql.migrate().await.unwrap();
        let pair = Pair { model: MemoryStore::new(Arc::new(Timestamp::now)), sql };
        let rng = StdRng::seed_from_u64(seed);
        let (stacks, rows, messages, leases, credentials) = Default::default();
        let mut world = World { rng, stacks, rows, messages, leases, credentials };
        for step in 0..STEPS {
            let (call, model, sql) = world.step(&pair).await;
            assert_eq!(model, sql, "seed {seed}, step {step}: {call}");
            if step % 10 == 9 {
                let (model, sql) = (world.look(&pair.model).await, world.look(&pair.sql).await);
                for (model, sql) in model.iter().zip(&sql) {
                    assert_eq!(model, sql, "seed {seed}, after step {step}: {call}");
                }
                assert_eq!(model.len(), sql.len());
            }
        }
    }
}

/// Only the time of the given clock matters.
#[tokio::test]
async fn the_model_lives_by_the_clock_it_is_given() {
    let seconds = Arc::new(AtomicI64::new(0));
    let given = Arc::clone(&seconds);
    let store = MemoryStore::new(Arc::new(move || at(given.load(Ordering::Relaxed))));
    let set = |second| seconds.store(second, Ordering::Relaxed);
    let made = store.create_stack(stack("web")).await.unwrap();
    let claim = async || store.claim(engine(), TTL, &[], 1).await.unwrap().pop();
    let first = claim().await.unwrap();
    set(14);
    assert_eq!(claim().await, None);
    set(17);
    let second = claim().await.unwrap();
    assert_eq!((second.epoch, second.clean, second.idle.as_secs()), (first.epoch + 1, false, 0));

    // One hour back: the owner may be alive for the duration of a lease.
    set(-3_600);
    assert_eq!(claim().await, None);
    set(-3_600 + 14);
    assert_eq!(claim().await, None);
    set(-3_600 + 15);
    let third = claim().await.unwrap();
    assert!(matches!(store.commit(second, Batch::default()).await, Err(Error::Stale(_))));

    let message = MessageId(Uuid::from_u128(1));
    let timer = Message {
        id: message,
        stack: made.id,
        resource: None,
        body: MessageBody::Timer(Timer::default()),
        due: at(100),
        sent: at(0),
    };
    let state = State::new(Action::Create, Status::Complete);
    let (reason, now) = (String::new(), at(0));
    let settle = Settle { generation: 1, state, reason, deleted: false, reached: true, now };
    let batch = Batch { timers: vec![timer.clone()], settle: Some(settle), ..Batch::default() };
    store.commit(third, batch).await.unwrap();
    store.release(&[third]).await.unwrap();
    set(99);
    assert_eq!(claim().await, None);
    assert!(store.inbox(made.id, at(99)).await.unwrap().is_empty());
    set(100);
    assert!(claim().await.unwrap().clean);
    assert_eq!(store.inbox(made.id, at(0)).await.unwrap(), [timer]);
}
