//! Faults, the journal, and many objects.

use std::time::Duration;

use kiln_testcloud::{Action, Fault, Service, Testcloud, When};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::{Client, start, text};
use crate::nova::{parts, server};

#[tokio::test]
async fn a_call_with_a_lost_response_was_executed() {
    let (cloud, demo) = start().await;
    let path = "/network/v2.0/networks";
    let fault = Fault::new(Service::Network, "POST", "/networks", Action::LostReply);
    cloud.faults().add(fault.when(When::Nth(1)));
    let body = json!({"network": {"name": "lost"}});
    demo.with("POST", path, body.clone(), &[]).await.expect_err("no byte of a reply");
    assert_eq!(demo.get(&format!("{path}?name=lost")).await.expect(200)["networks"].as_array().unwrap().len(), 1);
    demo.post(path, body).await.expect(201);
    let lost = cloud.journal().list().into_iter().find(|entry| entry.lost).expect("it is in the journal");
    assert_eq!((lost.call().as_str(), lost.status), ("POST network /networks", 201));
    assert_eq!(cloud.journal().counts()["POST network /networks"], 2);
}

#[tokio::test]
async fn a_status_fault_does_not_execute_the_call() {
    let (cloud, demo) = start().await;
    let before = cloud.snapshot();
    let fault = Fault::new(Service::Network, "POST", "/networks", Action::Status(503));
    cloud.faults().add(fault.when(When::Count(2)));
    for _ in 0..2 {
        demo.post("/network/v2.0/networks", json!({"network": {}})).await.refused(503, "NeutronError");
    }
    assert_eq!(before.added_in(&cloud.snapshot()), Vec::<String>::new());
    demo.post("/network/v2.0/networks", json!({"network": {}})).await.expect(201);
    assert_eq!(cloud.faults().list()[0].1, 3);
}

#[tokio::test]
async fn builds_fail_or_take_longer() {
    let (cloud, demo) = start().await;
    let (image, network) = parts(&demo).await;
    let before = cloud.snapshot().count("ports");
    let path = "/compute/v2.1/servers";
    cloud.faults().add(Fault::new(Service::Compute, "POST", "/servers", Action::FailBuild).when(When::Nth(1)));
    let id = demo.make(path, server(&image, json!([{"uuid": network}]), json!({}))).await;
    demo.wait(&format!("{path}/{id}"), "ERROR").await;
    let seen = demo.get(&format!("{path}/{id}")).await.expect(200);
    assert!(text(&seen["server"]["fault"]["message"]).starts_with("No valid host was found."));
    assert_eq!(cloud.snapshot().count("ports"), before, "a failed build leaves no port");
    cloud.faults().clear();
    // Only the exact path: an action is another call.
    cloud.faults().add(Fault::new(Service::Compute, "POST", "/servers$", Action::Status(503)));
    let action = json!({"os-getConsoleOutput": {}});
    demo.post(&format!("{path}/{id}/action"), action).await.expect(200);
    demo.post(path, server(&image, json!("none"), json!({}))).await.refused(503, "serviceUnavailable");
    let slow = Action::SlowBuild(Duration::from_millis(300));
    cloud.faults().add(Fault::new(Service::Volume, "POST", "/volumes", slow));
    let begun = Instant::now();
    let path = format!("/volume/v3/{}/volumes", demo.project);
    let id = demo.make(&path, json!({"volume": {"size": 1}})).await;
    demo.wait(&format!("{path}/{id}"), "available").await;
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn other_processes_have_the_same_functions() {
    let (cloud, demo) = start().await;
    let fault = json!({"service": "compute", "path": "/servers/*", "when": {"nth": 1}, "action": {"status": 500}});
    demo.post("/faults", fault).await.expect(204);
    demo.get("/compute/v2.1/servers/detail").await.refused(500, "computeFault");
    demo.get("/compute/v2.1/servers/detail").await.expect(200);
    assert_eq!(demo.get("/faults").await.expect(200)[0]["met"], 2);
    demo.post("/faults", json!({"action": "explode"})).await.refused(400, "unknown variant");
    let requests = demo.get("/requests").await.expect(200);
    assert_eq!(requests["counts"]["GET compute /servers/detail"], 2);
    let seen = demo.get("/snapshot").await.expect(200);
    assert_eq!(seen["objects"]["flavors"].as_array().unwrap().len(), cloud.snapshot().count("flavors"));
}

#[tokio::test]
async fn latency_is_applied_and_ids_are_determined_by_the_seed() {
    let start = async || {
        let cloud = Testcloud::builder().latency(Duration::from_millis(30)).seed(42).start().await.unwrap();
        let demo = Client::new(&cloud, cloud.users().demo).await;
        let begun = Instant::now();
        let id = demo.make("/network/v2.0/networks", json!({"network": {}})).await;
        assert!(begun.elapsed() >= Duration::from_millis(30));
        cloud.stop().await;
        id
    };
    assert_eq!(start().await, start().await);
}

#[tokio::test(start_paused = true)]
async fn builds_follow_tokios_time() {
    let cloud = Testcloud::builder().build_time(Duration::from_hours(1)).start().await.unwrap();
    let demo = Client::new(&cloud, cloud.users().demo).await;
    let (image, _) = parts(&demo).await;
    let id = demo.make("/compute/v2.1/servers", server(&image, json!("none"), json!({}))).await;
    let one = format!("/compute/v2.1/servers/{id}");
    assert_eq!(demo.get(&one).await.expect(200)["server"]["status"], "BUILD");
    tokio::time::sleep(Duration::from_secs(3601)).await;
    assert_eq!(demo.get(&one).await.expect(200)["server"]["status"], "ACTIVE");
}

/// The seconds that this thread has had of the processor.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("Linux");
    let times = stat.rsplit(')').next().expect("a name").split_whitespace().skip(11).take(2);
    times.map(|ticks| ticks.parse::<f64>().expect("a number") / 100.0).sum()
}

#[tokio::test]
async fn thousands_of_ports_take_linear_time() {
    let (cloud, demo) = start().await;
    let (_, network) = parts(&demo).await;
    let path = "/network/v2.0/ports";
    let batch = |size: usize| {
        let ports: Vec<Value> = (0..size).map(|at| json!({"network_id": network, "name": format!("p{at}")})).collect();
        json!({"ports": ports})
    };
    // Cloud and client run on this thread.
    let time = async |size: usize| {
        let begun = processor_seconds();
        demo.post(path, batch(size)).await.expect(201);
        processor_seconds() - begun
    };
    let first = time(500).await;
    time(4000).await;
    let last = time(500).await;
    // A scan of all ports for every new one would take about twenty times as long.
    assert!(last < (first + 0.01) * 8.0, "500 ports took {first} s at first and {last} s after 4,500");
    let made = |port: &&serde_json::Map<String, Value>| text(&port["name"]).starts_with('p');
    assert_eq!(cloud.snapshot().objects["ports"].iter().filter(made).count(), 5_000);
    let begun = processor_seconds();
    let found = demo.get(&format!("{path}?name=p7")).await.expect(200);
    assert_eq!(found["ports"].as_array().unwrap().len(), 3);
    let took = processor_seconds() - begun;
    assert!(took < 0.5, "an indexed filter took {took} s");
}
