//! Claims of many stacks.

use std::sync::Arc;
use std::time::Duration;

use kiln_resource::Status;
use kiln_store::MemoryStore;

use super::cluster::{Cluster, done};

/// From then on the heartbeat knows its lease.
#[tokio::test(start_paused = true)]
async fn a_claimed_stack_begins_before_the_next_one_is_claimed() {
    const STACKS: usize = 20;
    let mut cluster = Cluster::new(|_, _, _| done());
    let clock = Arc::clone(&cluster.backends.clock);
    let store = MemoryStore::new(Arc::new(move || clock.now())).with_commits_of(Duration::from_secs(2));
    cluster.backends.store = Arc::new(store);
    let mut stacks = Vec::new();
    for number in 0..STACKS {
        stacks.push(cluster.create_named(&format!("s{number}")).await);
    }
    let engine = cluster.engine();
    for id in stacks {
        assert_eq!(cluster.settled(id).await.0.state.status, Status::Complete);
    }
    let (first, _) = cluster.driver.seen()[0];
    // A claim, the begin of the request and that of the operation.
    assert!(first < 10.0, "the first call after {first} s");
    engine.kill();
}
