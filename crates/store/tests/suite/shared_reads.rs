//! Reads of stacks at the same time, which share queries.

use std::sync::Arc;

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
                    let save = vec![resource(made.id, &format!("r{round}"))];
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
