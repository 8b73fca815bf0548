//! Lost connections: cut by a proxy, or killed by an administrator of the server. Every call succeeds as if nothing had
//! happened, and is executed once.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kiln_resource::{Action, Status};
use kiln_store::{Batch, Error, EventQuery, Message, MessageBody, MessageId, Resource, SqlStore, StackRequest, Store};
use kiln_value::{Secret, Value};
use rand::SeedableRng;
use rand::rngs::StdRng;
use sea_orm::{ConnectionTrait, Database, DbBackend, Statement};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::bed::{Bed, beds, options};
use crate::make::{TTL, at, child, claimed, engine, event, resource, settle, stack, text};
use crate::proxy::{Cut, Proxy};

fn signal(stack: kiln_store::StackId) -> Message {
    let (id, body) = (MessageId(Uuid::new_v4()), MessageBody::Signal(Value::Null));
    Message { id, stack, resource: None, body, due: at(-900_000_000), sent: at(-900_000_000) }
}

const COMMITS: usize = 4;
const REQUESTS: i64 = 3;

/// The life of a stack: all writes.
async fn live(store: &dyn Store, name: &str) -> kiln_store::StackId {
    let plan = Secret::new("{}".to_owned());
    let credentials = store.plan_credentials(&plan).await.unwrap();
    store.keep_credentials(credentials, &plan).await.unwrap();
    let new = kiln_store::NewStack { credentials: Some(credentials), ..stack(name) };
    let made = store.create_stack(new).await.unwrap();
    for number in 0..REQUESTS {
        let before = made.generation + number;
        let desired = Some(text(&format!("{name} {number}")));
        let request = StackRequest { desired, if_generation: Some(before), ..StackRequest::new(Action::Update, at(1)) };
        let asked = store.request(made.id, request).await.unwrap();
        assert_eq!(asked.generation, before + 1);
        store.send(&signal(made.id)).await.unwrap();
    }
    let owner = engine();
    let leases = store.claim(owner, TTL, &[made.id], 1).await.unwrap();
    assert_eq!(leases.len(), 1, "nobody else wants it");
    let inbox = store.inbox(made.id, at(0)).await.unwrap();
    assert_eq!(i64::try_from(inbox.len()), Ok(REQUESTS));
    for number in 0..COMMITS {
        let row = resource(made.id, &format!("r{number}"));
        let batch = Batch {
            children: vec![child(&made, &row)],
            events: vec![event(&made, &row.name, 1)],
            save: vec![row].into(),
            handled: inbox.get(number).map(|message| message.id).into_iter().collect(),
            ..Batch::default()
        };
        store.commit(leases[0], batch).await.unwrap();
    }
    assert_eq!(store.renew(owner, TTL, &leases).await.unwrap(), leases);
    let settle = settle(made.generation + REQUESTS, Action::Update, Status::Complete);
    store.commit(leases[0], Batch { settle: Some(settle), ..Batch::default() }).await.unwrap();
    store.release(&leases).await.unwrap();
    made.id
}

/// Everything was executed once.
async fn check(bed: &Bed, id: kiln_store::StackId) {
    let found = bed.store.stack(id).await.unwrap().unwrap();
    assert_eq!((found.generation, found.settled), (1 + REQUESTS, 1 + REQUESTS));
    assert_eq!(bed.store.count_resources(id).await.unwrap(), COMMITS as u64);
    assert_eq!(bed.store.children(id).await.unwrap().len(), COMMITS);
    let query = EventQuery { stacks: vec![id], ..EventQuery::default() };
    let events = bed.store.events(&query).await.unwrap();
    assert_eq!(events.len(), 1 + COMMITS + usize::try_from(REQUESTS).unwrap());
    assert!(bed.store.inbox(id, at(0)).await.unwrap().is_empty());
    let lease = bed.store.claim(engine(), TTL, &[id], 1).await.unwrap();
    assert!(lease.is_empty(), "nothing is left to do");
}

async fn live_at_once(store: &Arc<SqlStore>, count: usize) -> Vec<kiln_store::StackId> {
    let mut lives = JoinSet::new();
    for number in 0..count {
        let store = Arc::clone(store);
        lives.spawn(async move { live(&*store, &format!("s{number}-{}", Uuid::new_v4())).await });
    }
    tokio::time::timeout(Duration::from_mins(2), lives.join_all()).await.expect("an end")
}

#[tokio::test]
async fn a_connection_cut_at_a_commit_is_no_error() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_server() {
            let proxy = Proxy::start(&bed).await;
            let store = proxy.store().await;
            for after in [false, true] {
                for number in 0..8 {
                    proxy.cut(Cut::AtCommit { after, left: 1 + number % 2 });
                    let id = live(&*store, &format!("s{number}-{after}")).await;
                    check(&bed, id).await;
                }
            }
            assert!(proxy.cuts() >= 16, "{}", proxy.cuts());
            drop(store);
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn connections_cut_anywhere_are_no_errors() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_server() {
            let proxy = Proxy::start(&bed).await;
            let store = proxy.store().await;
            proxy.cut(Cut::Often { rng: Box::new(StdRng::seed_from_u64(7)), packets: 25 });
            for id in live_at_once(&store, 12).await {
                check(&bed, id).await;
            }
            assert!(proxy.cuts() > 20, "{}", proxy.cuts());
            drop(store);
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn connections_that_an_administrator_kills_are_no_errors() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_server() {
            let store = Arc::new(SqlStore::open(options(bed.url())).await.unwrap());
            let (url, victims) = (bed.url().to_owned(), Arc::new(Mutex::new(0)));
            let mut killer = JoinSet::new();
            let kills = Arc::clone(&victims);
            killer.spawn(async move {
                loop {
                    let started = Instant::now();
                    let victims = Box::pin(kill_all(&url)).await;
                    *kills.lock().unwrap() += victims;
                    // A new connection is used at least once, however slow the machine is.
                    tokio::time::sleep(Duration::from_millis(40).max(4 * started.elapsed())).await;
                }
            });
            let mut lives = live_at_once(&store, 12).await;
            while *victims.lock().unwrap() <= 20 {
                lives.extend(live_at_once(&store, 12).await);
            }
            killer.shutdown().await;
            for id in lives {
                check(&bed, id).await;
            }
            drop(store);
        }
        bed.end().await;
    }
}

/// A limit that nobody knows, for example that of a proxy.
#[tokio::test]
async fn a_statement_in_which_each_connection_is_lost_is_given_up_with_its_size() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_server() {
            let (made, lease) = claimed(&*bed.store, "web").await;
            let proxy = Proxy::start(&bed).await;
            let store = proxy.store().await;
            proxy.cut(Cut::Above(1 << 20));
            let with = |size: usize| Resource { metadata: "x".repeat(size).into(), ..resource(made.id, "r") };
            let batch = |row: &Resource| Batch { save: [row.clone()].into_iter().collect(), ..Batch::default() };
            let refused = store.commit(lease, batch(&with(3 << 20))).await.unwrap_err();
            let text = refused.to_string();
            assert!(matches!(refused, Error::Invalid(_)) && text.contains("lost in a statement of 31"), "{text}");
            assert_eq!(proxy.cuts(), 4);
            // The store goes on with smaller ones.
            let small = with(1 << 19);
            store.commit(lease, batch(&small)).await.unwrap();
            assert_eq!(bed.store.resources(made.id).await.unwrap(), [small]);
            drop(store);
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn requests_are_told_within_seconds_that_connections_are_refused() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_server() {
            let proxy = Proxy::start(&bed).await;
            let store = proxy.store().await.for_requests();
            drop(proxy);
            let call = tokio::time::timeout(Duration::from_secs(15), store.create_stack(stack("web")));
            let answer = call.await.expect("an answer");
            assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
        }
        bed.end().await;
    }
}

/// Kills all other connections to the database; returns their number.
async fn kill_all(url: &str) -> usize {
    let db = Box::pin(Database::connect(url)).await.unwrap();
    let backend = db.get_database_backend();
    let killed = if backend == DbBackend::Postgres {
        let query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE datname = current_database() AND pid <> pg_backend_pid()";
        db.query_all_raw(Statement::from_string(backend, query)).await.unwrap().len()
    } else {
        let query = "SELECT CAST(id AS SIGNED) FROM information_schema.processlist \
                     WHERE db = DATABASE() AND id <> CONNECTION_ID()";
        let rows = db.query_all_raw(Statement::from_string(backend, query)).await.unwrap();
        for row in &rows {
            let id: i64 = row.try_get_by_index(0).unwrap();
            // It may already be closed.
            let _ = db.execute_unprepared(&format!("KILL {id}")).await;
        }
        rows.len()
    };
    db.close().await.unwrap();
    killed
}
