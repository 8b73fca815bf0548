//! A project whose requests take much time of the processors, and another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kiln_client::{Bundle, Client, StackFilter, StackRequest};
use kiln_testcloud::Testcloud;
use kiln_value::{Map, value};
use tokio::task::JoinSet;

use crate::processes::cluster::{Cluster, Limits};

/// 290 kB with a pattern that is slow on each value.
fn heavy() -> StackRequest {
    let parameter = |number: u32| {
        let schema = value!({
            "type": "string", "default": ("a".repeat(100)), "constraints": [{"allowed_pattern": "(a+)+b|a*"}],
            "description": "xxxxxxxx",
        });
        (format!("p{number}"), schema)
    };
    let parameters: Map = (0..1_500).map(parameter).collect();
    let template = value!({"heat_template_version": "2018-08-31", "parameters": parameters});
    assert!(kiln_value::text::json(&template).len() > 250_000);
    StackRequest { bundle: Bundle { template: Some(template), ..Bundle::default() }, ..StackRequest::default() }
}

/// Sends one heavy request after the other, and counts those that were answered.
async fn work(client: Arc<Client>, answered: Arc<AtomicUsize>) {
    loop {
        // A client on a busy machine may lose its patience: that is no answer.
        let answer = client.preview_stack("heavy", &heavy()).await;
        if answer.is_ok() || answer.is_err_and(|error| error.status().is_some()) {
            answered.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_light_project_is_served_while_a_heavy_one_computes() {
    let cloud = Testcloud::builder().start().await.expect("a cloud");
    let cluster = Cluster::in_one_process(cloud, Limits::default()).await;
    let users = cluster.cloud.users();
    let (demo, other) = (Arc::new(cluster.client(users.demo)), cluster.client(users.alt_demo));
    // Tokens are there before.
    demo.stacks(&StackFilter::default()).await.expect("a list");
    other.stacks(&StackFilter::default()).await.expect("a list");

    // One for each thread of the service, and more.
    let count = 2 * std::thread::available_parallelism().map_or(1, usize::from) + 2;
    let answered = Arc::new(AtomicUsize::new(0));
    let heavy: JoinSet<()> = (0..count).map(|_| work(Arc::clone(&demo), Arc::clone(&answered))).collect();
    let before = cluster.processor_time();
    // Until they have used enough to show that they want all threads. If they got all threads, each list would wait until a
    // heavy request is answered.
    let mut lists = 0;
    while lists < 20 || cluster.processor_time() < before + Duration::from_secs(1) {
        other.stacks(&StackFilter::default()).await.expect("a list");
        lists += 1;
    }
    let answered = answered.load(Ordering::SeqCst);
    assert!(2 * answered < lists, "{answered} heavy requests were answered during {lists} lists");
    drop(heavy);
    cluster.end().await;
}
