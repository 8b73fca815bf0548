//! A load test: three engines, several users, many stacks of servers. Every few seconds an engine is killed, frozen
//! beyond its lease or restarted, and responses of the cloud are lost.
//!
//! After the faults, every stack becomes COMPLETE, the cloud has exactly the objects of the live stacks and Keystone
//! one trust for each. `KILN_STORM_SEED` selects other users and faults; the timing of processes does not depend on the
//! seed.

mod chaos;
mod traffic;
mod users;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures::future::join_all;
use kiln_client::StackFilter;
use kiln_testcloud::{Action, Fault, Snapshot, Testcloud, When};
use tokio::sync::watch;

use self::chaos::Chaos;
use self::traffic::Traffic;
use self::users::User;
use crate::processes::cluster::{Cluster, Limits};
use crate::processes::wanted::{Ids, ids_in};

/// The amount of load.
struct Size {
    stacks: usize,
    users: usize,
    /// Average time between two requests of a user.
    pause: Duration,
    build: Duration,
    latency: Duration,
}

/// Time limit for stacks to settle after the faults.
const CALM: Duration = Duration::from_mins(3);
/// Time limit for the sweep to delete trusts.
const SWEPT: Duration = Duration::from_mins(1);
/// The fraction of writes whose responses are lost.
const LOST: f64 = 0.02;

/// Only one load test at a time, because they would compete for CPU time.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn storm(scheme: &str, size: Size) {
    let _alone = ALONE.lock().await;
    let servers = std::env::var("KILN_TEST_DATABASES").unwrap_or_default();
    let server = servers.split_whitespace().find(|url| url.starts_with(scheme));
    let server = server.unwrap_or_else(|| panic!("no {scheme} server: run it by crates/store/tests/databases.sh"));
    let seed: u64 = std::env::var("KILN_STORM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let cloud = Testcloud::builder().seed(seed).latency(size.latency).build_time(size.build).start().await;
    let limits = Limits::short();
    let mut cluster = Cluster::start(cloud.expect("a simulated cloud"), server, 3, limits).await;
    let accounts = [cluster.cloud.users().demo, cluster.cloud.users().alt_demo];
    let mut users: Vec<User> = (0..size.users)
        .map(|n| {
            let quota = size.stacks / size.users + usize::from(n < size.stacks % size.users);
            User::new(n, cluster.client(accounts[n % 2]), quota, seed)
        })
        .collect();
    let before = cluster.cloud.snapshot();
    lose_replies(&cluster.cloud);

    let start = Instant::now();
    let (calm, is_calm) = watch::channel(false);
    let mut chaos = Chaos::new(seed);
    let mut traffic = Traffic::default();
    let work = async {
        join_all(users.iter_mut().map(|user| user.act(size.pause))).await;
        let worked = start.elapsed();
        cluster.cloud.faults().clear();
        calm.send_replace(true);
        worked
    };
    let (worked, (), ()) = tokio::join!(
        work,
        chaos.run(&mut cluster.engines, &cluster.limits, is_calm.clone()),
        traffic.watch(cluster.cloud.journal(), is_calm),
    );
    let calm_from = Instant::now();
    let mut wrong = settle(&users).await;
    let settled = calm_from.elapsed();
    check(&cluster, &before, &users, &mut wrong).await;

    let live: usize = users.iter().map(|user| user.live().count()).sum();
    println!("storm on {scheme}: {}; {worked:.0?}, settled {settled:.1?} later", users::summary(&users));
    println!("  engines: {chaos}");
    println!("  calls a second (most): {traffic}");
    assert!(wrong.is_empty(), "seed {seed}, logs in {}:\n{}", cluster.folder().display(), wrong.join("\n"));

    let from = Instant::now();
    join_all(users.iter_mut().map(User::delete_all)).await;
    let mut wrong = settle(&users).await;
    check(&cluster, &before, &users, &mut wrong).await;
    println!("  {live} live stacks deleted in {:.1?}", from.elapsed());
    assert!(wrong.is_empty(), "seed {seed}, logs in {}:\n{}", cluster.folder().display(), wrong.join("\n"));
    cluster.end().await;
}

fn lose_replies(cloud: &Testcloud) {
    for method in ["POST", "PUT", "DELETE"] {
        for (action, part) in [(Action::LostReply, LOST), (Action::StatusAfter(504), LOST / 4.0)] {
            let (method, when) = (Some(method.to_owned()), When::Probability(part));
            cloud.faults().add(Fault { service: None, method, path: String::new(), when, action });
        }
    }
}

/// Waits until no stack is in progress; returns those that do not settle, are unexpected or are missing.
async fn settle(users: &[User]) -> Vec<String> {
    let start = Instant::now();
    loop {
        let mut wrong = Vec::new();
        let mut in_progress = false;
        for user in users {
            let stacks = user.client.stacks(&StackFilter::default()).await.expect("a list of stacks");
            let mine = |stack: &&kiln_client::Stack| user.owns(stack.name());
            for stack in stacks.iter().filter(mine) {
                in_progress |= stack.status().ends_with("_IN_PROGRESS");
                let is_live = user.live().any(|owned| owned.name == stack.name());
                if !is_live || !stack.status().ends_with("_COMPLETE") {
                    wrong.push(format!("{} is {}: {}", stack.name(), stack.status(), stack.reason()));
                }
            }
            for owned in user.live().filter(|owned| !stacks.iter().any(|stack| stack.name() == owned.name)) {
                wrong.push(format!("{} is not there", owned.name));
            }
        }
        if !in_progress || start.elapsed() > CALM {
            return wrong;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Compares the cloud with the live stacks.
async fn check(cluster: &Cluster, before: &Snapshot, users: &[User], wrong: &mut Vec<String>) {
    let now = cluster.cloud.snapshot();
    let mut owned = Ids::new();
    let (mut attached, mut live) = (0, 0);
    for user in users {
        wrong.extend(user.refused.iter().cloned());
        for stack in user.live() {
            let Some(wanted) = &stack.wanted else { continue };
            for (kind, ids) in wanted.check(&user.client, &stack.name, &now, wrong).await {
                owned.entry(kind).or_default().extend(ids);
            }
            attached += usize::from(wanted.volume);
            live += 1;
        }
    }
    let old = ids_in(before);
    for (kind, ids) in ids_in(&now) {
        let mine = owned.remove(kind).unwrap_or_default();
        let made: BTreeSet<String> = ids.difference(&old[kind]).cloned().collect();
        wrong.extend(
            made.difference(&mine).map(|id| format!("{kind} {id} belongs to no stack: {}", row(&now, kind, id))),
        );
    }
    let attachments = now.count("volume_attachments") - before.count("volume_attachments");
    if attachments != attached {
        wrong.push(format!("{attachments} volumes are attached, should be {attached}"));
    }
    let trusts = || cluster.cloud.snapshot().count("trusts") - before.count("trusts");
    let start = Instant::now();
    // Stacks share trusts, and there is none without a stack.
    let fits = |trusts: usize| trusts <= live && (trusts == 0) == (live == 0);
    while !fits(trusts()) && start.elapsed() < SWEPT {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    if !fits(trusts()) {
        wrong.push(format!("{} trusts for {live} stacks", trusts()));
    }
}

fn row(snapshot: &Snapshot, kind: &str, id: &str) -> String {
    let row = snapshot.objects.get(kind).and_then(|rows| rows.iter().find(|row| row["id"] == id));
    row.map(|row| serde_json::Value::from(row.clone()).to_string()).unwrap_or_default()
}

/// Some 30 stacks: a minute and a half at most.
mod short {
    use super::{Duration, Size, storm};

    const SHORT: Size = Size {
        stacks: 30,
        users: 3,
        pause: Duration::from_millis(900),
        build: Duration::from_secs(2),
        latency: Duration::from_millis(30),
    };

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "needs a server: see the module"]
    async fn postgresql() {
        storm("postgres", SHORT).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "needs a server: see the module"]
    async fn mariadb() {
        storm("mysql", SHORT).await;
    }
}

/// 200 stacks.
mod long {
    use super::{Duration, Size, storm};

    const LONG: Size = Size {
        stacks: 200,
        users: 6,
        pause: Duration::from_millis(2500),
        build: Duration::from_secs(4),
        latency: Duration::from_millis(50),
    };

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "takes several minutes, and needs a server: see the module"]
    async fn postgresql() {
        storm("postgres", LONG).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "takes several minutes, and needs a server: see the module"]
    async fn mariadb() {
        storm("mysql", LONG).await;
    }
}
