//! What an API keeps of stacks and lists, while an engine in another process changes them.

use std::time::Duration;

use kiln_client::{Bundle, EventFilter, StackRequest};
use kiln_testcloud::Testcloud;
use kiln_value::value;

use crate::processes::cluster::{Cluster, Limits, end_of};

fn request(number: i64) -> StackRequest {
    let template = value!({
        "heat_template_version": "2018-08-31",
        "resources": {"it": {"type": "OS::Heat::Value", "properties": {"type": "number", "value": number}}},
        "outputs": {"out": {"value": {"get_attr": ["it", "value"]}}},
    });
    StackRequest { bundle: Bundle { template: Some(template), ..Bundle::default() }, ..StackRequest::default() }
}

/// A request is answered twice from the store, and then from what was kept.
const TIMES: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn clients_see_the_changes_of_another_process() {
    let cloud = Testcloud::builder().start().await.expect("a simulated cloud");
    let cluster = Cluster::start(cloud, "sqlite", 1, Limits::default()).await;
    let client = cluster.client(cluster.cloud.users().demo);
    client.create_stack("s", &request(0)).await.expect("accepted");
    let mut events_before = 0;
    for number in 0..8 {
        let (action, events) = if number == 0 { ("CREATE", 2) } else { ("UPDATE", 4) };
        if number > 0 {
            client.update_stack("s", &request(number)).await.expect("accepted");
        }
        let complete = format!("{action}_COMPLETE");
        let (status, reason) = end_of(&client, "s", Duration::from_mins(1)).await;
        assert_eq!(status, complete, "{reason}");
        for _ in 0..TIMES {
            let output = client.output("s", "out").await.expect("an output");
            assert_eq!(output.get("output_value"), Some(&number.into()), "the output after {action} {number}");
            let resources = client.resources("s", 0, false, &Vec::new()).await.expect("resources");
            let shown: Vec<_> = resources.iter().filter_map(|one| one.0.str_at("resource_status")).collect();
            assert_eq!(shown, [complete.as_str()], "after {action} {number}");
            let listed = client.events("s", &EventFilter::default()).await.expect("events").len();
            assert!(
                listed >= events_before + events,
                "{listed} events after {action} {number}, {events_before} before"
            );
        }
        events_before = client.events("s", &EventFilter::default()).await.expect("events").len();
    }
    cluster.end().await;
}
