//! How much a purge, a page of a list and a claim read, however many rows there are. With `--ignored`, there are a million events
//! and 100,000 stacks.

use std::time::{Duration, Instant};

use kiln_store::{Batch, Claimable, EngineId, Event, EventQuery, Lease, NewStack, Retention, StackQuery, Store};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, Statement};

use crate::bed::{Bed, beds};
use crate::make::{PROJECT, at, claimed, deleting, engine, event, stack};

/// The ID of a copy with a number, as the database computes it.
const ID: &str = "CONCAT('00000000-0000-0000-0000-', SUBSTR(CAST(1000000000000 + {n} AS CHAR(13)), 2))";
/// The same, for 100 stacks with the same number of events.
const STACK: &str = "CONCAT('00000000-0000-0000-0000-', SUBSTR(CAST(1000000000000 + {n} % 100 AS CHAR(13)), 2))";

/// The columns of an event and of a stack that copies have in common.
const OF_EVENT: &str = "root, resource_name, resource_type, action, status, reason, time";
const OF_STACK: &str = "project, root, depth, action, status, reason, desired, generation, settled, disable_rollback, \
    username, user_id";

/// The first node, without the store.
struct Node(DatabaseConnection);

impl Node {
    async fn of(bed: &Bed) -> Self {
        let node = Self(bed.connection().await);
        node.execute("CREATE TABLE digit (d INT PRIMARY KEY)").await;
        node.execute("INSERT INTO digit VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)").await;
        if node.0.get_database_backend() == DbBackend::MySql {
            node.execute("SET GLOBAL userstat = 1").await;
        }
        node
    }

    async fn execute(&self, statement: &str) {
        self.0.execute_unprepared(statement).await.unwrap();
    }

    async fn number(&self, query: &str) -> i64 {
        let row = self.0.query_one_raw(Statement::from_string(self.0.get_database_backend(), query)).await.unwrap();
        row.unwrap().try_get_by_index(0).unwrap()
    }

    /// Copies a row, ten times for one digit, a hundred times for two. `{n}` in a column that differs is the number of the copy.
    async fn copy(&self, table: &str, key: &str, id: &str, digits: usize, same: &str, different: &[(&str, &str)]) {
        let numbers: Vec<String> = (0..digits).map(|place| format!("digit d{place}")).collect();
        let terms: Vec<String> = (0..digits).map(|place| format!("d{place}.d * 1{}", "0".repeat(place))).collect();
        let (names, values): (Vec<_>, Vec<_>) = different.iter().copied().unzip();
        let values = values.join(", ").replace("{n}", &format!("({})", terms.join(" + ")));
        let (names, numbers) = (names.join(", "), numbers.join(", "));
        let select = format!("SELECT {values}, {same} FROM {table}, {numbers} WHERE {table}.{key} = '{id}'");
        self.execute(&format!("INSERT INTO {table} ({names}, {same}) {select}")).await;
        if self.0.get_database_backend() == DbBackend::Postgres {
            // As the server does on its own a minute after many rows were written.
            self.execute(&format!("VACUUM ANALYZE {table}")).await;
        }
    }

    /// The rows of a table and entries of its indexes that were read, as the server has counted them: PostgreSQL when a session
    /// ends. SQLite does not count.
    async fn read(&self, table: &str) -> i64 {
        let query = match self.0.get_database_backend() {
            DbBackend::Postgres => format!(
                "SELECT (seq_tup_read + (SELECT SUM(idx_tup_read) FROM pg_stat_user_indexes i \
                    WHERE i.relid = t.relid))::bigint FROM pg_stat_user_tables t WHERE relname = '{table}'"
            ),
            DbBackend::MySql => format!(
                "SELECT CAST(COALESCE(SUM(rows_read), 0) AS SIGNED) FROM information_schema.table_statistics \
                    WHERE table_schema = DATABASE() AND table_name = '{table}'"
            ),
            _ => "SELECT 0".to_owned(),
        };
        self.number(&query).await
    }

    /// What a store of its own reads of a table.
    async fn measured(&self, bed: &Bed, table: &str, work: impl AsyncFnOnce(&dyn Store)) -> i64 {
        let before = self.read(table).await;
        let is_postgres = self.0.get_database_backend() == DbBackend::Postgres;
        let sessions = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_start > ";
        let mut since = String::new();
        if is_postgres {
            since = bed.texts("SELECT clock_timestamp()::text").await.remove(0);
        }
        let store = bed.again().await;
        work(&store).await;
        drop(store);
        while is_postgres && self.number(&format!("{sessions} '{since}'")).await > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.read(table).await - before
    }
}

fn with(event: Event) -> Batch {
    Batch { events: vec![event], ..Batch::default() }
}

/// A step of a purge looks at few events and deletes few, so that others go on; all steps together read each a few times.
async fn purge_events(digits: usize, keep: u64) {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            let node = Node::of(&bed).await;
            let (origin, lease) = claimed(&*bed.store, "origin").await;
            let first = event(&origin, "a", 1);
            bed.store.commit(lease, with(first.clone())).await.unwrap();
            node.copy("kiln_event", "id", &first.id.to_string(), digits, OF_EVENT, &[("id", ID), ("stack", STACK)])
                .await;
            let all = 10_i64.pow(u32::try_from(digits).unwrap());
            let (mut steps, mut others) = (0, 2);
            let read = node
                .measured(&bed, "kiln_event", async |store: &dyn Store| {
                    let mut after = 0;
                    loop {
                        let purge = store.forget_events(keep, after).await.unwrap();
                        assert!(purge.looked_at <= 1_000 && purge.deleted < 10_000, "{purge:?}");
                        steps += 1;
                        after = purge.after;
                        if !purge.has_more {
                            break;
                        }
                        if others < 7 {
                            store.commit(lease, with(event(&origin, "b", 2))).await.unwrap();
                            others += 1;
                        }
                    }
                })
                .await;
            println!("{all} events: {steps} steps, {read} rows read");
            assert!(read <= 20 * all, "{read} rows of {all}");
            for most in ["MAX", "MIN"] {
                let left = format!(
                    "SELECT {most}(n) FROM \
                    (SELECT COUNT(*) AS n FROM kiln_event WHERE stack <> '{}' GROUP BY stack) AS counted",
                    origin.id
                );
                assert_eq!(node.number(&left).await, i64::try_from(keep).unwrap());
            }
            let query = EventQuery { stacks: vec![origin.id], ..EventQuery::default() };
            assert_eq!(bed.store.events(&query).await.unwrap().len(), others, "nothing of those with few events");
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn a_purge_of_events_has_bounded_steps() {
    purge_events(4, 10).await;
}

#[tokio::test]
#[ignore = "takes minutes: a part of .ci/run nightly"]
async fn a_purge_of_a_million_events_has_bounded_steps() {
    purge_events(6, 1_000).await;
}

/// The events of a deleted stack, of which there may be any number if all are kept.
async fn purge_stack(digits: usize) {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            let node = Node::of(&bed).await;
            let (origin, lease) = claimed(&*bed.store, "origin").await;
            let first = event(&origin, "a", 1);
            bed.store.commit(lease, with(first.clone())).await.unwrap();
            let id = format!("'{}'", origin.id);
            node.copy("kiln_event", "id", &first.id.to_string(), digits, OF_EVENT, &[("id", ID), ("stack", &id)]).await;
            bed.store.commit(lease, deleting(origin.generation)).await.unwrap();
            let mut steps = 0;
            loop {
                let gone = bed.store.forget(&Retention { deleted_before: at(1_000), operations: 0 }).await.unwrap();
                assert!(gone < 10_000, "{gone} rows");
                if gone == 0 {
                    break;
                }
                steps += 1;
            }
            println!("10^{digits} events: {steps} steps");
            assert_eq!(bed.store.stack(origin.id).await.unwrap(), None);
            assert_eq!(node.number("SELECT COUNT(*) FROM kiln_event").await, 0);
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn a_purge_of_a_stack_has_bounded_steps() {
    purge_stack(4).await;
}

#[tokio::test]
#[ignore = "takes minutes: a part of .ci/run nightly"]
async fn a_purge_of_a_stack_with_a_million_events_has_bounded_steps() {
    purge_stack(6).await;
}

/// A page of the list of a project reads the stacks that it shows, wherever it begins.
async fn list_page(digits: usize) {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            let node = Node::of(&bed).await;
            let origin = bed.store.create_stack(stack("origin")).await.unwrap();
            let different = [("id", ID), ("name", ID), ("live_name", ID), ("created", "{n}")];
            node.copy("kiln_stack", "id", &origin.id.to_string(), digits, OF_STACK, &different).await;
            let half = 10_i64.pow(u32::try_from(digits).unwrap()) / 2;
            let middle = format!("00000000-0000-0000-0000-{half:012}").parse().unwrap();
            for marker in [None, Some(middle)] {
                let page =
                    StackQuery { project: Some(PROJECT.to_owned()), limit: Some(20), marker, ..Default::default() };
                let read = node
                    .measured(&bed, "kiln_stack", async |store: &dyn Store| {
                        assert_eq!(store.stack_summaries(&page).await.unwrap().len(), 20);
                    })
                    .await;
                println!("a page of 10^{digits} stacks after {marker:?}: {read} rows read");
                assert!(read <= 50, "{read} rows");
            }
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn a_page_reads_its_stacks_only() {
    list_page(3).await;
}

#[tokio::test]
#[ignore = "takes minutes: a part of .ci/run nightly"]
async fn a_page_of_a_hundred_thousand_stacks_reads_its_stacks_only() {
    list_page(5).await;
}

/// Claims that a slow machine does not lose before the test ends.
async fn claim_for_long(store: &dyn Store, owner: EngineId, claimable: Claimable<'_>, limit: usize) -> Vec<Lease> {
    let mut leases = Vec::new();
    let hour = Duration::from_hours(1);
    store.claim_each(owner, hour, claimable, limit, &mut |lease| leases.push(lease)).await.unwrap();
    leases
}

/// Stacks of a project with many that wait, all older than the only stack of each of the other projects.
async fn claims_of_projects(projects: i64, digits: usize) {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_shared() {
            let node = Node::of(&bed).await;
            let origin = bed.store.create_stack(stack("origin")).await.unwrap().id.to_string();
            let different = [("id", ID), ("name", ID), ("live_name", ID), ("created", "{n}"), ("due", "{n}")];
            node.copy("kiln_stack", "id", &origin, digits, OF_STACK, &different).await;
            let of_lease = "owner, epoch, expires, writes, ttl, released";
            node.copy("kiln_lease", "stack", &origin, digits, of_lease, &[("stack", ID)]).await;
            let mut others = Vec::new();
            for number in 1..=projects {
                let project = format!("p{number}");
                let new = NewStack { now: at(number), project, ..stack("only") };
                others.push(bed.store.create_stack(new).await.unwrap().id);
            }
            let all = 10_i64.pow(u32::try_from(digits).unwrap());
            // A claim takes the oldest and reads no more, however many wait.
            let read = node
                .measured(&bed, "kiln_stack", async |store: &dyn Store| {
                    let (start, owner) = (Instant::now(), engine());
                    for _ in 0..10 {
                        assert_eq!(claim_for_long(store, owner, Claimable::Free, 10).await.len(), 10);
                    }
                    println!("{all} stacks wait: ten claims of ten take {:?}", start.elapsed());
                })
                .await;
            println!("{all} stacks wait: ten claims of ten read {read} rows");
            assert!(read <= 5_000, "{read} rows");
            // The big project has its share.
            let busy = [PROJECT.to_owned()];
            let mut won = Vec::new();
            let read = node
                .measured(&bed, "kiln_stack", async |store: &dyn Store| {
                    let (start, owner) = (Instant::now(), engine());
                    while won.len() < others.len() {
                        let leases = claim_for_long(store, owner, Claimable::OfOtherProjects(&busy), 64).await;
                        assert!(!leases.is_empty(), "{} of {}", won.len(), others.len());
                        won.extend(leases.iter().map(|lease| lease.stack));
                    }
                    println!("{all} stacks wait: the claims of {} others take {:?}", won.len(), start.elapsed());
                    let start = Instant::now();
                    assert!(claim_for_long(store, owner, Claimable::OfOtherProjects(&busy), 64).await.is_empty());
                    println!(
                        "{all} stacks wait: a search for others, of which there are none, takes {:?}",
                        start.elapsed()
                    );
                })
                .await;
            println!("{all} stacks wait: the claims of others read {read} rows");
            assert_eq!(won, others, "the oldest first");
            // Each search looks at all that wait once, and at no stack at rest.
            assert!(read <= 20 * (all + 2 * projects), "{read} rows of {all}");
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn a_claim_among_ten_thousand_reads_what_it_takes() {
    claims_of_projects(100, 4).await;
}

#[tokio::test]
#[ignore = "takes a minute: a part of .ci/run nightly"]
async fn a_claim_among_a_hundred_thousand_reads_what_it_takes() {
    claims_of_projects(999, 5).await;
}
