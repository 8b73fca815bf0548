//! A server that goes silent: its connections stay open, but nothing comes any more.

use std::sync::Arc;
use std::time::Duration;

use kiln_resource::Action;
use kiln_store::{Error, SqlStore, StackRequest, Store};
use tokio::task::JoinSet;

use crate::bed::{beds, options};
use crate::make::{TTL, at, claim, engine, stack};
use crate::proxy::{Proxy, Stalled};

/// Uses connections of both pools at the same time, so that several are idle afterwards.
async fn warm(store: &Arc<SqlStore>) {
    let mut uses = JoinSet::new();
    for number in 0..6 {
        let store = Arc::clone(store);
        uses.spawn(async move {
            store.create_stack(stack(&format!("warm-{number}"))).await.unwrap();
            store.census().await.unwrap();
        });
    }
    uses.join_all().await;
}

#[tokio::test]
async fn connections_that_went_silent_are_replaced_and_writes_are_done_once() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_server() {
            let proxy = Proxy::start(&bed).await;
            let store = proxy.store().await;
            warm(&store).await;
            let made = store.create_stack(stack("web")).await.unwrap();
            let lease = claim(&*store, engine(), made.id).await;
            proxy.stall(Stalled::Open);
            let leases = [lease];
            let request = StackRequest { if_generation: Some(1), ..StackRequest::new(Action::Update, at(1)) };
            let (asked, renewed, listed) = tokio::join!(
                store.request(made.id, request),
                store.renew(lease.owner, TTL, &leases),
                store.resources(made.id),
            );
            assert_eq!(asked.unwrap().generation, 2);
            assert_eq!(renewed.unwrap(), leases);
            assert_eq!(listed.unwrap(), []);
            drop(store);
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn a_server_that_answers_nothing_is_an_error_within_seconds_and_forgotten_when_it_answers() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_server() {
            let proxy = Proxy::start(&bed).await;
            let store = Arc::new(proxy.store().await.for_requests());
            warm(&store).await;
            proxy.stall(Stalled::All);
            let mut calls = JoinSet::new();
            // More than there are connections.
            for number in 0..12 {
                let store = Arc::clone(&store);
                let call = async move { store.create_stack(stack(&format!("s{number}"))).await.map(drop) };
                calls
                    .spawn(async move { tokio::time::timeout(Duration::from_secs(5), call).await.expect("an answer") });
            }
            for answer in calls.join_all().await {
                assert!(matches!(answer, Err(Error::Unavailable { .. })), "{answer:?}");
            }
            proxy.stall(Stalled::None);
            store.create_stack(stack("later")).await.unwrap();
            drop(store);
        }
        bed.end().await;
    }
}

#[tokio::test]
async fn a_statement_that_the_server_works_on_is_waited_for() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if bed.is_server() {
            let store = Arc::new(SqlStore::open(options(bed.url())).await.unwrap());
            let lock = bed.lock_stacks().await;
            let create = tokio::spawn({
                let store = Arc::clone(&store);
                async move { store.create_stack(stack("web")).await }
            });
            let waiting = if bed.url().starts_with("postgres") {
                "SELECT CAST(pid AS TEXT) FROM pg_stat_activity \
                 WHERE datname = current_database() AND wait_event_type = 'Lock'"
            } else {
                "SELECT CAST(id AS CHAR) FROM information_schema.processlist \
                 WHERE db = DATABASE() AND state LIKE 'Waiting for%'"
            };
            while bed.texts(waiting).await.is_empty() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let first = bed.texts(waiting).await;
            // Longer than a connection for which the server does nothing is waited for.
            tokio::time::sleep(Duration::from_millis(4_500)).await;
            assert_eq!(bed.texts(waiting).await, first, "the same session");
            lock.close().await.unwrap();
            create.await.unwrap().unwrap();
            drop(store);
        }
        bed.end().await;
    }
}
