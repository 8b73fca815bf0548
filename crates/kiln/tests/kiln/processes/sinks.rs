//! Event sinks in Zaqar, from `kiln api` over `kiln engine` to the queue, although engines are killed.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kiln_client::{Bundle, Client, StackRequest};
use kiln_cloud::{Connector, Credentials, Options, SharedClient, TlsOptions};
use kiln_resource::{Cloud as _, CloudRequest, Method};
use kiln_testcloud::{Service, Testcloud};
use kiln_value::{Value, value};

use crate::processes::cluster::{Cluster, Limits};

const STACK: &str = "told";

/// A stack with a nested one; its events go to a queue.
fn request() -> StackRequest {
    let inner = r#"{"heat_template_version": "2018-08-31", "resources": {"net": {"type": "OS::Neutron::Net"}}}"#;
    let mut bundle = Bundle {
        template: Some(value!({
            "heat_template_version": "2018-08-31",
            "resources": {"inside": {"type": "inner.yaml"}, "beside": {"type": "OS::Neutron::Net"}},
        })),
        ..Bundle::default()
    };
    bundle.files.insert("inner.yaml".to_owned(), inner.into());
    let environment = r#"{"event_sinks": [{"type": "zaqar-queue", "target": "my events", "ttl": 300}]}"#;
    bundle.files.insert("env.yaml".to_owned(), environment.into());
    bundle.environment_files.push("env.yaml".to_owned());
    StackRequest { bundle, disable_rollback: Some(true), ..StackRequest::default() }
}

/// The messages in the queue, as the user reads them.
async fn queue(cloud: &Testcloud) -> Vec<Value> {
    let demo = cloud.users().demo;
    let transport = SharedClient::new(&TlsOptions::default()).expect("a transport");
    let options = Options::new(cloud.auth_url().parse().expect("a URL"));
    let credentials = Credentials::password(demo.user, demo.password, demo.project, "Default");
    let cloud = Connector::new(std::sync::Arc::new(transport), options).cloud(&credentials).await;
    let request = CloudRequest::new("messaging", Method::Get, "/v2/queues/my%20events/messages");
    let request = request.query("echo", "true").query("limit", "1000");
    let answer = cloud.call(request).await.expect("an answer").body;
    answer.get("messages").and_then(Value::as_list).expect("messages").to_vec()
}

/// Stack or resource, action and status of each event, once.
fn told(messages: &[Value]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut told = Vec::new();
    for message in messages {
        let body = message.get("body").expect("a body");
        if seen.insert(body.str_at("id").expect("an ID")) {
            let at = |key: &str| body.get("payload").and_then(|payload| payload.str_at(key)).unwrap_or_default();
            let name = at("resource_name").split('-').next().unwrap_or_default();
            told.push([name, at("resource_action"), at("resource_status")].join(" "));
        }
    }
    told
}

async fn settled(client: &Client) {
    let start = Instant::now();
    loop {
        match client.stack(STACK, false).await {
            Ok(stack) if stack.status().ends_with("_COMPLETE") => return,
            Err(error) if error.is_not_found() => return,
            Ok(stack) => assert!(!stack.status().ends_with("_FAILED"), "{}", stack.reason()),
            Err(error) => panic!("{error}"),
        }
        assert!(start.elapsed() < Duration::from_mins(1), "stuck");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn disturbed(cluster: &mut Cluster, client: &Client, kills: usize) {
    for number in 0..kills {
        tokio::time::sleep(Duration::from_millis(120 + 70 * number as u64)).await;
        cluster.engines[0].kill();
        cluster.restart(0);
    }
    settled(client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_events_of_a_stack_are_in_its_queue_although_the_engine_is_killed() {
    for kills in [0, 3] {
        let cloud = Testcloud::builder().latency(Duration::from_millis(5)).start().await.expect("a simulated cloud");
        let limits =
            Limits { lease: Duration::from_secs(1), call_limit: Duration::from_millis(1500), ..Limits::default() };
        let mut cluster = Cluster::start(cloud, "sqlite", 1, limits).await;
        let client = cluster.client(cluster.cloud.users().demo);
        client.create_stack(STACK, &request()).await.expect("a create");
        disturbed(&mut cluster, &client, kills).await;
        client.delete_stack(STACK).await.expect("a delete");
        disturbed(&mut cluster, &client, kills).await;
        let start = Instant::now();
        let messages = loop {
            let messages = queue(&cluster.cloud).await;
            if told(&messages).last().is_some_and(|last| last == "told DELETE COMPLETE") {
                break messages;
            }
            assert!(start.elapsed() < Duration::from_secs(90), "{:?}", told(&messages));
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!(messages[0].get("ttl"), Some(&300.into()));
        let told = told(&messages);
        assert_eq!(told[0], "told CREATE IN_PROGRESS");
        // The nested stack's own events are there too.
        for expected in
            ["inside CREATE COMPLETE", "net CREATE COMPLETE", "net DELETE COMPLETE", "beside DELETE COMPLETE"]
        {
            assert!(told.iter().any(|event| event == expected), "{expected}: {told:?}");
        }
        if kills == 0 {
            assert_eq!(told.len(), messages.len(), "each once");
        }
        // The trust is deleted after the last event was sent.
        let start = Instant::now();
        while !cluster.cloud.journal().list().iter().any(|call| {
            call.service == Service::Identity && call.method == "DELETE" && call.path.contains("/OS-TRUST/trusts/")
        }) {
            assert!(start.elapsed() < Duration::from_secs(90), "the trust is left");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        cluster.end().await;
    }
}
