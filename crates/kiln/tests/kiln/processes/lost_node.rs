//! A node of a Galera cluster of three dies. The API is connected to it by a proxy, which goes on with another node; one
//! engine is connected to it directly and has no database any more. The other nodes have a quorum, so the API goes on, and
//! the engine on another node completes everything.

use std::process::Command;
use std::time::{Duration, Instant};

use futures::future::join_all;
use kiln_client::{Client, Error};
use kiln_testcloud::{Service, Testcloud};
use sea_orm::{ConnectionTrait as _, Database, Statement};
use tokio::net::{TcpListener, TcpStream};

use crate::processes::cluster::{Cluster, Limits, end_of};
use crate::processes::wanted::{Ids, Wanted, ids_in};

/// Time limit for an operation. A cluster excludes a silent node after five seconds, and leases expire in between.
const LIMIT: Duration = Duration::from_secs(90);
const STACKS: usize = 6;

/// SIGKILL to the server.
async fn kill(server: &str) {
    let db = Box::pin(Database::connect(server)).await.expect("the node");
    let ask = Statement::from_string(db.get_database_backend(), "SELECT @@pid_file");
    let file = db.query_one_raw(ask).await.expect("an answer").expect("a row");
    let file: String = file.try_get_by_index(0).expect("a path");
    let pid = std::fs::read_to_string(file).expect("its process");
    let killed = Command::new("kill").args(["-s", "KILL", pid.trim()]).status().expect("kill runs");
    assert!(killed.success(), "the node {server}");
}

/// A proxy as in front of most clusters: new connections go to the first node that takes them. Returns its URL.
async fn proxy(nodes: &[&str]) -> String {
    let host =
        |url: &str| url.rsplit_once('@').and_then(|(_, place)| place.split_once('/')).expect("a URL").0.to_owned();
    let hosts: Vec<String> = nodes.iter().map(|node| host(node)).collect();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = nodes[0].replacen(&hosts[0], &listener.local_addr().expect("its address").to_string(), 1);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let hosts = hosts.clone();
            tokio::spawn(async move {
                for host in &hosts {
                    if let Ok(mut node) = TcpStream::connect(host).await {
                        // Either side may break off.
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut node).await;
                        return;
                    }
                }
            });
        }
    });
    url
}

async fn all_become(client: &Client, names: &[String], wanted: &str) {
    for (name, (status, reason)) in
        join_all(names.iter().map(async |name| (name, end_of(client, name, LIMIT).await))).await
    {
        assert_eq!(status, wanted, "{name}: {reason}");
    }
}

/// Creates a stack as a client does that repeats what was answered with 503: until the cluster has excluded the node, the
/// others do not answer either.
pub(crate) async fn create_despite_silence(client: &Client, name: &str, wanted: &Wanted) {
    let start = Instant::now();
    let mut repeated = false;
    loop {
        match client.create_stack(name, &wanted.request()).await {
            Ok(_) => return,
            Err(Error::Refused(refusal)) if refusal.status == 503 && start.elapsed() < LIMIT => repeated = true,
            // The request before it, whose answer was 503, has created it.
            Err(Error::Refused(refusal)) if refusal.status == 409 && repeated => return,
            Err(error) => panic!("the API goes on: {error}"),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs three nodes: crates/store/tests/databases.sh --galera=3"]
async fn one_of_three() {
    let servers = std::env::var("KILN_TEST_DATABASES").unwrap_or_default();
    let nodes: Vec<&str> = servers.split(',').collect();
    assert_eq!(nodes.len(), 3, "no three nodes: run it by crates/store/tests/databases.sh --galera=3");
    let builder = Testcloud::builder().latency(Duration::from_millis(20)).build_time(Duration::from_secs(2));
    let limits = Limits::short();
    let databases = [&proxy(&[nodes[1], nodes[0]]).await, nodes[1], nodes[2]].join(",");
    let mut cluster = Cluster::start(builder.start().await.expect("a simulated cloud"), &databases, 2, limits).await;
    let client = cluster.client(cluster.cloud.users().demo);
    let before = cluster.cloud.snapshot();
    let wanted = Wanted { pairs: 2, nested: true, volume: true, ..Wanted::small() };
    let mut names: Vec<String> = (0..STACKS).map(|number| format!("stack-{number}")).collect();
    for name in &names {
        client.create_stack(name, &wanted.request()).await.expect("a create");
    }
    // In the midst of the work.
    let writes = || cluster.cloud.journal().count(|call| call.service != Service::Identity && call.method == "POST");
    let start = Instant::now();
    while writes() < STACKS * 4 {
        assert!(start.elapsed() < LIMIT, "the engines do not work");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    kill(nodes[1]).await;
    names.push("later".to_owned());
    create_despite_silence(&client, "later", &wanted).await;

    all_become(&client, &names, "CREATE_COMPLETE").await;
    assert!(!cluster.engines[0].is_gone(), "the engine without its node waits for it");
    let (now, mut wrong, mut owned) = (cluster.cloud.snapshot(), Vec::new(), Ids::new());
    for name in &names {
        for (kind, ids) in wanted.check(&client, name, &now, &mut wrong).await {
            owned.entry(kind).or_default().extend(ids);
        }
    }
    for (kind, ids) in ids_in(&now) {
        let made = ids.difference(&ids_in(&before)[kind]).count();
        let known = owned.get(kind).map_or(0, std::collections::BTreeSet::len);
        if made != known {
            wrong.push(format!("{made} {kind} were made, {known} belong to stacks"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "logs in {}", cluster.folder().display());

    for name in &names {
        client.delete_stack(name).await.expect("a delete");
    }
    all_become(&client, &names, "DELETE_COMPLETE").await;
    let left = before.added_in(&cluster.cloud.snapshot()).into_iter().filter(|object| !object.starts_with("trusts "));
    assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new(), "left behind");
    cluster.end().await;
}
