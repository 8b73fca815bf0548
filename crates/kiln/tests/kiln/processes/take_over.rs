//! kill -9 of one of two engines with the default lease: the other one goes on within 20 s.
//!
//! ```sh
//! crates/store/tests/databases.sh cargo test -p kiln --test kiln -- --ignored take_over
//! ```

use std::time::{Duration, Instant};

use kiln_testcloud::Testcloud;
use sea_orm::{ConnectionTrait as _, Database, DatabaseConnection, Statement};

use crate::processes::cluster::{Cluster, Limits, end_of, log_of};
use crate::processes::wanted::Wanted;

/// A take-over happens within 20 s; half as long again on a busy machine.
const TAKEN_OVER: Duration = Duration::from_secs(30);
/// For what takes seconds on a quiet machine.
const LIMIT: Duration = Duration::from_mins(2);

/// The processes of the engines that hold leases.
async fn owners(db: &DatabaseConnection) -> Vec<i64> {
    let query = "SELECT DISTINCT e.pid FROM kiln_lease l JOIN kiln_engine e ON e.id = l.owner WHERE l.expires > 0";
    let rows = db.query_all_raw(Statement::from_string(db.get_database_backend(), query)).await.expect("an answer");
    rows.iter().map(|row| row.try_get_by_index(0).expect("a process")).collect()
}

/// Waits until only these engines hold leases.
async fn await_owners(db: &DatabaseConnection, limit: Duration, are_they: impl Fn(&[i64]) -> bool) -> Vec<i64> {
    let start = Instant::now();
    loop {
        let owners = owners(db).await;
        if are_they(&owners) {
            return owners;
        }
        assert!(start.elapsed() < limit, "the leases belong to {owners:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn the_other_engine_goes_on(server: &str) {
    // Longer than a take-over takes.
    let cloud = Testcloud::builder().build_time(Duration::from_secs(45)).start().await.expect("a simulated cloud");
    let mut cluster = Cluster::start(cloud, server, 2, Limits::default()).await;
    assert_eq!(cluster.limits.lease, kiln_engine::Options::default().lease);
    let (before, wanted) = (cluster.cloud.snapshot(), Wanted { pairs: 2, ..Wanted::small() });
    let client = cluster.client(cluster.cloud.users().demo);
    client.create_stack("s", &wanted.request()).await.expect("accepted");
    let servers = || cluster.cloud.journal().count(|call| call.method == "POST" && call.path.ends_with("/servers"));
    let start = Instant::now();
    while servers() < 2 {
        assert!(start.elapsed() < LIMIT, "no engine works");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let db = Box::pin(Database::connect(cluster.database_url())).await.expect("the database");
    let owners = await_owners(&db, LIMIT, |owners| owners.len() == 1).await;
    let pids: Vec<i64> = cluster.engines.iter().map(|engine| i64::from(engine.pid())).collect();
    let working = pids.iter().position(|pid| owners == [*pid]).expect("one of the engines");
    let other = 1 - working;
    cluster.engines[working].kill();
    await_owners(&db, TAKEN_OVER, |owners| *owners == [pids[other]]).await;
    // The lease is in the database before the line is in the log.
    let start = Instant::now();
    loop {
        let log = std::fs::read_to_string(cluster.folder().join(log_of(other))).expect("a log");
        if log.contains("took over the stack from a failed engine") {
            break;
        }
        assert!(start.elapsed() < LIMIT, "{log}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let (status, reason) = end_of(&client, "s", LIMIT).await;
    assert_eq!(status, "CREATE_COMPLETE", "{reason}");
    let (now, mut wrong) = (cluster.cloud.snapshot(), Vec::new());
    let ids = wanted.check(&client, "s", &now, &mut wrong).await;
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(now.count("servers") - before.count("servers"), ids["servers"].len(), "nothing is made twice");
    db.close().await.expect("closed");
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs servers: crates/store/tests/databases.sh"]
async fn take_over() {
    let servers = std::env::var("KILN_TEST_DATABASES").expect("started by crates/store/tests/databases.sh");
    futures::future::join_all(servers.split_whitespace().map(the_other_engine_goes_on)).await;
}
