//! kill -9 of the service while the members of a group become resources with names, and go back: all have moved or none, the
//! stack comes to rest, and no object changes.
//!
//! `KILN_CRASHES` is the number of moves.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kiln_client::{Bundle, Client, StackRequest};
use kiln_testcloud::Testcloud;
use kiln_value::{Map, Value, value};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::processes::cluster::{Cluster, Limits, end_of};

const STACK: &str = "web";
const COUNT: i64 = 3;

/// The networks are members of the group, or have names.
fn request(are_members: bool) -> StackRequest {
    let net = |index: &str| value!({"type": "OS::Neutron::Net", "properties": {"name": (format!("net-{index}"))}});
    let count = if are_members { COUNT } else { 0 };
    let group = value!({"type": "OS::Heat::ResourceGroup", "properties": {
        "count": count, "resource_def": (net("%index%")),
    }});
    let mut resources = Map::from_iter([("group".to_owned(), group)]);
    if !are_members {
        resources.extend((0..COUNT).map(|index| (format!("net{index}"), net(&index.to_string()))));
    }
    let template = value!({"heat_template_version": "2018-08-31", "resources": (Value::Map(resources))});
    StackRequest { bundle: Bundle { template: Some(template), ..Bundle::default() }, ..StackRequest::default() }
}

fn place(are_members: bool, index: i64) -> String {
    if are_members { format!("group/{index}") } else { format!("net{index}") }
}

async fn moved(client: &Client, to_members: bool) -> Result<Value, kiln_client::Error> {
    let one = |index: i64| {
        let path = |are_members: bool| format!("{STACK}/{}", place(are_members, index));
        value!({"from": (path(!to_members)), "to": (path(to_members))})
    };
    let moves: Value = (0..COUNT).map(one).collect();
    client.refactor_stacks(&[(STACK.to_owned(), request(to_members))], &moves, false).await
}

/// The IDs of the networks by the names of their resources.
async fn networks(client: &Client) -> BTreeMap<String, String> {
    let resources = client.resources(STACK, 2, false, &vec![]).await.expect("resources");
    let nets = resources.iter().filter(|resource| resource.kind() == "OS::Neutron::Net");
    nets.map(|net| (net.name().to_owned(), net.physical_id().to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refactoring_is_whole_although_the_service_is_killed() {
    let kills = std::env::var("KILN_CRASHES").ok().and_then(|count| count.parse().ok()).unwrap_or(16);
    let limits = Limits { lease: Duration::from_secs(1), ..Limits::short() };
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let mut cluster = Cluster::in_one_process(cloud, limits).await;
    let client = cluster.client(cluster.cloud.users().demo);
    client.create_stack(STACK, &request(true)).await.expect("a create");
    let settled = async || end_of(&client, STACK, Duration::from_mins(1)).await;
    assert_eq!(settled().await.0, "CREATE_COMPLETE");
    let ids: Vec<String> = networks(&client).await.into_values().collect();
    assert_eq!(i64::try_from(ids.len()), Ok(COUNT));
    cluster.cloud.journal().clear();
    let named = |are_members: bool| -> BTreeMap<String, String> {
        let name = |index: i64| if are_members { index.to_string() } else { place(false, index) };
        (0..).zip(&ids).map(|(index, id)| (name(index), id.clone())).collect()
    };
    let (mut chance, mut are_members, mut interrupted) = (StdRng::seed_from_u64(1), true, 0);
    for kill in 0..kills {
        let wait = Duration::from_millis(chance.random_range(0..60));
        let asked = tokio::spawn({
            let client = cluster.client(cluster.cloud.users().demo);
            async move { moved(&client, !are_members).await }
        });
        tokio::time::sleep(wait).await;
        cluster.restart_api().await;
        let answer = asked.await.expect("an answer");
        let is_left = client.stack(STACK, false).await.expect("a stack").status() == "UPDATE_IN_PROGRESS";
        interrupted += i32::from(answer.is_err() || is_left);
        let (status, reason) = settled().await;
        assert!(status.ends_with("_COMPLETE"), "kill {kill} after {wait:?}: {status}: {reason}");
        let now = networks(&client).await;
        if now == named(are_members) {
            assert!(answer.is_err(), "kill {kill} after {wait:?}: what was answered is lost");
            // The killed process may still have the lease of the nested stack.
            let start = Instant::now();
            while let Err(error) = moved(&client, !are_members).await {
                let is_busy = error.status() == Some(409) && error.to_string().contains("is being changed");
                assert!(is_busy && start.elapsed() < Duration::from_secs(30), "kill {kill} after {wait:?}: {error}");
            }
            assert_eq!(settled().await.0, "UPDATE_COMPLETE");
        }
        are_members = !are_members;
        assert_eq!(networks(&client).await, named(are_members), "kill {kill} after {wait:?}");
    }
    println!("{interrupted} of {kills} kills met a refactoring");
    assert!(interrupted > 0, "no kill met a refactoring");
    assert_eq!(cluster.cloud.journal().writes(), Vec::<String>::new());
    client.delete_stack(STACK).await.expect("a delete");
    assert_eq!(settled().await.0, "DELETE_COMPLETE");
    cluster.end().await;
}
