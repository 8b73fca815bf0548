//! Reads of stacks at the same time, which share queries.

use std::sync::Arc;
use std::time::Duration;

use kiln_store::{Batch, StackId};
use uuid::Uuid;

use crate::bed::beds;
use crate::make::{claimed, resource};

/// Each read sees what was committed before it, also if it arrives while the query of others is in progress, and no other
/// stack than its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_at_the_same_time_see_what_was_committed() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let mut clients = tokio::task::JoinSet::new();
        for number in 0..20 {
            let (store, name) = (Arc::clone(&bed.store), format!("s{number}"));
            clients.spawn(async move {
                let (made, lease) = claimed(&*store, &name).await;
                for round in 1..=10 {
                    let save = vec![resource(made.id, &format!("r{round}"))].into();
                    store.commit(lease, Batch { save, ..Batch::default() }).await.unwrap();
                    for _ in 0..3 {
                        let read = store.stack(made.id).await.unwrap().unwrap();
                        assert_eq!((read.name.as_str(), read.writes), (name.as_str(), made.writes + round));
                    }
                    assert_eq!(store.stack(StackId(Uuid::new_v4())).await.unwrap(), None);
                }
            });
        }
        clients.join_all().await;
        bed.end().await;
    }
}

/// Thousands of clients give up while their reads wait for a shared query: the others get their answers, and nothing is
/// kept of those that left.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn clients_that_leave_harm_no_other() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        let (made, _) = claimed(&*bed.store, "s").await;
        let id = made.id;
        for _ in 0..3 {
            let read = || {
                let store = Arc::clone(&bed.store);
                async move { store.stack(id).await.unwrap().map(|stack| stack.name) }
            };
            let impatient: Vec<_> = (0..2_000).map(|_| tokio::spawn(read())).collect();
            let patient: Vec<_> = (0..20).map(|_| tokio::spawn(read())).collect();
            impatient.iter().for_each(tokio::task::JoinHandle::abort);
            for read in patient {
                let name = tokio::time::timeout(Duration::from_secs(20), read).await.expect("an answer").unwrap();
                assert_eq!(name.as_deref(), Some("s"));
            }
        }
        bed.end().await;
    }
}

/// A server that does not respond for longer than a read waits for the query of others: each read gets its answer when the
/// server goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reads_are_answered_when_a_server_that_hung_goes_on() {
    let mut beds = beds();
    while let Some(bed) = beds.next().await {
        if !bed.is_server() {
            bed.end().await;
            continue;
        }
        let (made, _) = claimed(&*bed.store, "s").await;
        let locked = bed.lock_stacks().await;
        let reads: Vec<_> = (0..40)
            .map(|_| {
                let (store, id) = (Arc::clone(&bed.store), made.id);
                tokio::spawn(async move { store.stack(id).await.unwrap().map(|stack| stack.name) })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert!(reads.iter().all(|read| !read.is_finished()), "the lock holds nobody up: this shows nothing");
        locked.close().await.unwrap();
        for read in reads {
            let name = tokio::time::timeout(Duration::from_secs(20), read).await.expect("an answer").unwrap();
            assert_eq!(name.as_deref(), Some("s"));
        }
        bed.end().await;
    }
}
