//! Commits that end long after others that began later.

use std::sync::Arc;
use std::time::Duration;

use kiln_store::{Batch, Event, EventId, EventQuery, EventReader, StackId, Store};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, Statement};

use crate::bed::{Bed, beds};
use crate::make::{PROJECT, claimed, event};

/// A commit with this waits for [`lock`] after it has written its events.
fn admitting() -> Batch {
    Batch { admit: Some(1), ..Batch::default() }
}

/// Lets writes to the row of a stack wait until the transaction ends.
async fn lock(bed: &Bed, stack: StackId) -> DatabaseConnection {
    let db = bed.connection().await;
    db.execute_unprepared("BEGIN").await.unwrap();
    db.execute_unprepared(&format!("SELECT id FROM kiln_stack WHERE id = '{stack}' FOR UPDATE")).await.unwrap();
    db
}

/// Waits until this many transactions wait for a lock in the database of a bed.
async fn waiting(db: &DatabaseConnection, count: i64) {
    let query = match db.get_database_backend() {
        DbBackend::Postgres => {
            "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        }
        _ => {
            "SELECT COUNT(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p \
                ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()"
        }
    };
    let wait = async {
        loop {
            let row = db.query_one_raw(Statement::from_string(db.get_database_backend(), query)).await.unwrap();
            if row.unwrap().try_get_by_index::<i64>(0).unwrap() >= count {
                return;
            }
            // What MariaDB answers is renewed only after a pause.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("transactions that wait for a lock");
}

fn ids(events: &[Event]) -> Vec<EventId> {
    events.iter().map(|event| event.id).collect()
}

async fn read(reader: &mut EventReader, store: &dyn Store) -> Vec<EventId> {
    ids(&reader.next(store).await.unwrap())
}

async fn late(reader: &mut EventReader, store: &dyn Store) -> Vec<EventId> {
    ids(&reader.late(store, None).await.unwrap())
}

/// All new and late events. (On a cluster, a node may give higher numbers than those that another one gave before.)
async fn all(reader: &mut EventReader, store: &dyn Store, root: Option<StackId>) -> Vec<EventId> {
    let mut found = Vec::new();
    loop {
        let mut events = reader.next(store).await.unwrap();
        if events.is_empty() {
            events = reader.late(store, root).await.unwrap();
        }
        if events.is_empty() {
            return found;
        }
        found.extend(ids(&events));
    }
}

/// Events that become visible long after events with higher numbers are found, and somebody rings for them.
#[tokio::test]
async fn a_slow_commit_loses_no_events() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_server() {
            let other = bed.another().await;
            let store = &*other;
            // On the node with the lock.
            let writer = Arc::clone(&bed.store);
            let (slow, slow_lease) = claimed(&*writer, "slow").await;
            let (fast, fast_lease) = claimed(store, "fast").await;
            let of_project = || EventQuery { project: Some(PROJECT.to_owned()), ..EventQuery::default() };
            let of_signals = || EventQuery { actions: vec!["SIGNAL".to_owned()], ..of_project() };
            let mut from_first = EventReader::from_first(of_project());
            let mut filtered = EventReader::from_first(of_signals());
            assert_eq!(read(&mut from_first, store).await.len(), 2);
            assert!(read(&mut filtered, store).await.is_empty());

            let db = lock(&bed, slow.id).await;
            let hidden = [event(&slow, "a", 1), Event { action: "SIGNAL".into(), ..event(&slow, "b", 1) }];
            let events = hidden.to_vec();
            let committing =
                tokio::spawn(async move { writer.commit(slow_lease, Batch { events, ..admitting() }).await });
            waiting(&db, 1).await;
            let mut from_now = EventReader::from_now(store, of_project()).await.unwrap();
            let seen = event(&fast, "a", 2);
            store.commit(fast_lease, Batch { events: vec![seen.clone()], ..Batch::default() }).await.unwrap();
            assert_eq!(read(&mut from_first, store).await, [seen.id]);
            assert_eq!(read(&mut from_now, store).await, [seen.id]);
            assert!(late(&mut from_first, store).await.is_empty());
            assert!(late(&mut filtered, store).await.is_empty());
            let mut after = EventReader::after(store, of_project(), seen.id).await.unwrap();
            // Nobody looks for the numbers of the slow commit any more.
            let news = store.news();
            while tokio::time::timeout(Duration::from_secs(2), news.wait()).await.is_ok() {}

            db.execute_unprepared("COMMIT").await.unwrap();
            committing.await.unwrap().unwrap();
            tokio::time::timeout(Duration::from_secs(30), news.wait()).await.expect("a reason to look");
            for reader in [&mut from_first, &mut from_now, &mut after] {
                assert_eq!(all(reader, store, None).await, ids(&hidden));
            }
            assert_eq!(all(&mut filtered, store, Some(slow.id)).await, [hidden[1].id]);
        }
        bed.end().await;
    }
}

/// Late events come before those of the same stack that are new.
#[tokio::test]
async fn the_events_of_a_stack_are_read_in_order() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_server() {
            let (other, writer) = (bed.another().await, Arc::clone(&bed.store));
            let store = &*other;
            let (slow, slow_lease) = claimed(&*writer, "slow").await;
            let (fast, fast_lease) = claimed(store, "fast").await;
            let query = EventQuery { project: Some(PROJECT.to_owned()), ..EventQuery::default() };
            let mut reader = EventReader::from_now(store, query).await.unwrap();
            let db = lock(&bed, slow.id).await;
            let events: Vec<Event> = (0..250).map(|number| event(&slow, &format!("r{number}"), 1)).collect();
            let hidden = events.clone();
            let committing =
                tokio::spawn(async move { writer.commit(slow_lease, Batch { events: hidden, ..admitting() }).await });
            waiting(&db, 1).await;
            let seen = event(&fast, "a", 2);
            store.commit(fast_lease, Batch { events: vec![seen.clone()], ..Batch::default() }).await.unwrap();
            assert_eq!(read(&mut reader, store).await, [seen.id]);
            db.execute_unprepared("COMMIT").await.unwrap();
            committing.await.unwrap().unwrap();
            let last = event(&slow, "z", 3);
            store.commit(slow_lease, Batch { events: vec![last.clone()], ..Batch::default() }).await.unwrap();
            let mut found = Vec::new();
            while found.last() != Some(&last.id) {
                found.extend(read(&mut reader, store).await);
            }
            let mut expected = ids(&events);
            expected.push(last.id);
            assert_eq!(found, expected);
        }
        bed.end().await;
    }
}
