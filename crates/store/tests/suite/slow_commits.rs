//! Commits that end long after others that began later.

use std::sync::Arc;
use std::time::Duration;

use kiln_resource::Action;
use kiln_store::{Batch, Event, EventId, EventQuery, EventReader, StackId, StackRequest, Store};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend};

use crate::bed::{Bed, beds, transactions};
use crate::make::{PROJECT, at, claimed, event};

/// The action of the events that a closed gate holds up.
const HELD: Action = Action::Suspend;

/// Holds up transactions with an event of [`HELD`] on the first node, after the event got its number, until the
/// transaction of this connection ends.
async fn close_gate(bed: &Bed) -> DatabaseConnection {
    let db = bed.connection().await;
    let statements: &[&str] = match db.get_database_backend() {
        DbBackend::Postgres => &[
            "CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS \
                $$ BEGIN PERFORM id FROM gate WHERE id = 1 FOR UPDATE; RETURN NULL; END $$",
            "CREATE TRIGGER gate AFTER INSERT ON kiln_event FOR EACH ROW \
                WHEN (NEW.action = 'SUSPEND') EXECUTE FUNCTION pass()",
        ],
        _ => &["CREATE TRIGGER gate AFTER INSERT ON kiln_event FOR EACH ROW \
            IF NEW.action = 'SUSPEND' THEN SELECT id FROM gate WHERE id = 1 INTO @passed FOR UPDATE; END IF"],
    };
    for statement in ["CREATE TABLE gate (id INT PRIMARY KEY)", "INSERT INTO gate (id) VALUES (1)"] {
        db.execute_unprepared(statement).await.unwrap();
    }
    for statement in statements.iter().chain(&["BEGIN", "SELECT id FROM gate WHERE id = 1 FOR UPDATE"]) {
        db.execute_unprepared(statement).await.unwrap();
    }
    db
}

fn held(event: Event) -> Event {
    Event { action: Event::action_of(HELD), ..event }
}

fn with(events: Vec<Event>) -> Batch {
    Batch { events, ..Batch::default() }
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
            let rows = transactions(db, query).await;
            if rows[0].try_get_by_index::<i64>(0).unwrap() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
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

            let db = close_gate(&bed).await;
            let hidden = [Event { action: "SIGNAL".into(), ..event(&slow, "a", 1) }, held(event(&slow, "b", 1))];
            let events = hidden.to_vec();
            let committing = tokio::spawn(async move { writer.commit(slow_lease, with(events)).await });
            waiting(&db, 1).await;
            let mut from_now = EventReader::from_now(store, of_project()).await.unwrap();
            let seen = event(&fast, "a", 2);
            store.commit(fast_lease, with(vec![seen.clone()])).await.unwrap();
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
            assert_eq!(all(&mut filtered, store, Some(slow.id)).await, [hidden[0].id]);
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
            let db = close_gate(&bed).await;
            let mut events: Vec<Event> = (0..250).map(|number| event(&slow, &format!("r{number}"), 1)).collect();
            events.push(held(event(&slow, "last", 1)));
            let hidden = events.clone();
            let committing = tokio::spawn(async move { writer.commit(slow_lease, with(hidden)).await });
            waiting(&db, 1).await;
            let seen = event(&fast, "a", 2);
            store.commit(fast_lease, with(vec![seen.clone()])).await.unwrap();
            assert_eq!(read(&mut reader, store).await, [seen.id]);
            db.execute_unprepared("COMMIT").await.unwrap();
            committing.await.unwrap().unwrap();
            let last = event(&slow, "z", 3);
            store.commit(slow_lease, with(vec![last.clone()])).await.unwrap();
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

/// Who begins writes the event that is held up. The other one waits for it, or on another node of a cluster overtakes it as a
/// whole, so that a reader meets the events of the stack in the order of their numbers.
async fn overtake(is_request: bool) {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_server() {
            let (other, writer) = (bed.another().await, Arc::clone(&bed.store));
            let store = &*other;
            let (stack, lease) = claimed(&*writer, "both").await;
            let query = EventQuery { root: Some(stack.id), ..EventQuery::default() };
            let mut reader = EventReader::from_first(query.clone());
            let mut found = read(&mut reader, store).await;
            let db = close_gate(&bed).await;
            let write = |store: Arc<dyn Store>, is_request: bool, actions: Vec<Action>| {
                let events =
                    actions.iter().map(|action| Event { action: Event::action_of(*action), ..event(&stack, "a", 1) });
                let (id, events): (_, Vec<Event>) = (stack.id, events.collect());
                tokio::spawn(async move {
                    for (action, event) in actions.into_iter().zip(events) {
                        if is_request {
                            store.request(id, StackRequest::new(action, at(1))).await.unwrap();
                        } else {
                            store.commit(lease, with(vec![event])).await.unwrap();
                        }
                    }
                })
            };
            let slow = write(writer, is_request, vec![HELD]);
            waiting(&db, 1).await;
            // The nodes of a cluster give even and odd numbers: one of two is higher.
            let mut fast = write(Arc::clone(&other), !is_request, vec![Action::Check, Action::Check]);
            let is_done = tokio::select! {
                done = &mut fast => done.is_ok(),
                () = waiting(&db, 2) => false,
            };
            found.extend(all(&mut reader, store, None).await);
            db.execute_unprepared("COMMIT").await.unwrap();
            slow.await.unwrap();
            if !is_done {
                fast.await.unwrap();
            }
            found.extend(all(&mut reader, store, None).await);
            assert_eq!(found, ids(&store.events(&query).await.unwrap()));
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn a_commit_does_not_overtake_a_slow_request() {
    overtake(true).await;
}

#[tokio::test]
async fn a_request_does_not_overtake_a_slow_commit() {
    overtake(false).await;
}
