//! A trace follows a request of a client through the API, two engines and nested stacks into the calls of the cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use http::{HeaderMap, HeaderValue, Method};
use kiln_cloud::{HttpRequest, SharedClient, TlsOptions, Transport as _};
use kiln_testcloud::Testcloud;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::processes::cluster::{Cluster, Limits};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENT: &str = "00f067aa0ba902b7";

/// A span as the collector got it.
#[derive(Clone, Debug)]
struct Span {
    id: String,
    parent: String,
    name: String,
    kind: u64,
    pid: String,
    attributes: BTreeMap<String, Value>,
    failed: bool,
    times: (u128, u128),
}

/// A collector of OTLP over HTTP.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Value>>>);

impl Collector {
    async fn start() -> (Self, String) {
        let collector = Self::default();
        let take = |State(collector): State<Self>, headers: HeaderMap, body: String| async move {
            assert_eq!(
                (&headers["content-type"], &headers["x-key"]),
                (&"application/json".parse().unwrap(), &"secret".parse().unwrap())
            );
            collector.0.lock().unwrap().push(serde_json::from_str(&body).unwrap());
            "{}"
        };
        let router = Router::new().route("/v1/traces", post(take)).with_state(collector.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (collector, url)
    }

    /// The spans of the trace, by ID.
    fn spans(&self) -> BTreeMap<String, Span> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let attributes = |list: &Value| -> BTreeMap<String, Value> {
            let list = list.as_array().unwrap().iter();
            list.map(|one| (text(&one["key"]), one["value"].as_object().unwrap().values().next().unwrap().clone()))
                .collect()
        };
        let mut spans = BTreeMap::new();
        for body in self.0.lock().unwrap().iter() {
            let of = &body["resourceSpans"][0];
            let resource = attributes(&of["resource"]["attributes"]);
            assert_eq!(resource["service.name"], "kiln");
            let own = of["scopeSpans"][0]["spans"].as_array().unwrap().iter();
            for span in own.filter(|span| span["traceId"] == TRACE) {
                let time = |name: &str| text(&span[name]).parse().unwrap();
                let span = Span {
                    id: text(&span["spanId"]),
                    parent: text(&span["parentSpanId"]),
                    name: text(&span["name"]),
                    kind: span["kind"].as_u64().unwrap(),
                    pid: text(&resource["process.pid"]),
                    attributes: attributes(&span["attributes"]),
                    failed: span["status"]["code"] == 2,
                    times: (time("startTimeUnixNano"), time("endTimeUnixNano")),
                };
                assert!(spans.insert(span.id.clone(), span).is_none(), "a span was sent twice");
            }
        }
        spans
    }

    /// The spans, once there is one of this name.
    async fn wait_for(&self, name: &str, condition: impl Fn(&Span) -> bool) -> BTreeMap<String, Span> {
        let limit = Instant::now() + Duration::from_mins(1);
        loop {
            let spans = self.spans();
            if spans.values().any(|span| span.name == name && condition(span)) {
                return spans;
            }
            assert!(
                Instant::now() < limit,
                "no span {name:?} in {:#?}",
                spans.values().map(|span| &span.name).collect::<Vec<_>>()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_goes_through_engines_and_nested_stacks_into_the_cloud() {
    let (collector, url) = Collector::start().await;
    let cloud = Testcloud::builder().build_time(Duration::from_secs(4)).start().await.expect("a simulated cloud");
    let options = format!("[kiln]\notlp_endpoint = {url}\n");
    let limits = Limits { lease: Duration::from_secs(2), call_limit: Duration::from_secs(3), ..Limits::default() };
    let variables = [("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")];
    let mut cluster = Cluster::start_with_variables(cloud, "sqlite", 1, limits, &options, &variables).await;
    let (address, token) = cluster.access(cluster.cloud.users().demo).await;
    let template = json!({
        "heat_template_version": "2018-08-31",
        "resources": {
            "network": {"type": "OS::Neutron::Net"},
            "below": {"type": "below.yaml", "depends_on": "network"},
            "word": {"type": "OS::Heat::RandomString"},
            "wrong": {"type": "OS::Neutron::Port", "depends_on": "below", "properties": {
                "network": {"get_resource": "network"}, "mac_address": {"get_attr": ["word", "value"]},
            }},
        },
    });
    let below = json!({
        "heat_template_version": "2018-08-31",
        "resources": {
            "server": {"type": "OS::Nova::Server", "properties": {
                "image": "cirros", "flavor": "m1.tiny", "networks": [{"network": "private"}],
            }},
        },
    });
    let body = json!({"stack_name": "traced", "template": template, "files": {"below.yaml": below.to_string()}});
    let mut headers = HeaderMap::new();
    headers.insert("x-auth-token", HeaderValue::from_str(&token).unwrap());
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("traceparent", HeaderValue::from_str(&format!("00-{TRACE}-{CLIENT}-01")).unwrap());
    let request = HttpRequest {
        method: Method::POST,
        url: format!("{address}/stacks").parse().unwrap(),
        headers,
        body: Some(body.to_string().into()),
        timeout: Duration::from_secs(20),
    };
    let created = SharedClient::new(&TlsOptions::default()).unwrap().send(request).await.unwrap();
    assert_eq!(created.status.as_u16(), 201);

    // The first engine fails while the server is built; another one ends the operation.
    let first = collector
        .wait_for("POST compute", |span| span.attributes["url.path"].as_str().unwrap().ends_with("/servers"))
        .await;
    let first_engine = first.values().find(|span| span.name == "POST compute").unwrap().pid.clone();
    cluster.engines[0].kill();
    cluster.restart(0);
    let spans = collector.wait_for("CREATE stack", |span| span.attributes["name"] == "traced").await;

    let request = spans.values().find(|span| span.name == "POST /{tenant_id}/stacks").unwrap();
    assert_eq!((request.parent.as_str(), request.kind), (CLIENT, 2));
    assert_eq!(request.attributes["http.response.status_code"], "201");
    let operations: Vec<&Span> = spans.values().filter(|span| span.name == "CREATE stack").collect();
    let operation = operations.iter().find(|span| span.attributes["name"] == "traced").unwrap();
    assert_eq!(operation.parent, request.id);
    assert!(operation.failed && operation.attributes["state"] == "CREATE_FAILED", "{operation:?}");
    assert_eq!(operation.attributes["kiln.request"], created.headers["x-openstack-request-id"].to_str().unwrap());
    // The nested stack is below its parent, and spans the work of both engines.
    let [nested] = operations.iter().filter(|span| span.id != operation.id).collect::<Vec<_>>()[..] else {
        panic!("{operations:?}")
    };
    assert_eq!((nested.parent.as_str(), nested.failed), (operation.id.as_str(), false));
    assert!(nested.times.1 - nested.times.0 > 3_000_000_000, "{nested:?}");
    assert_ne!(nested.pid, first_engine);
    // Steps of both engines are below the same operation; calls of the cloud are below steps.
    let steps = |name: &str| spans.values().filter(|span| span.name == name).cloned().collect::<Vec<_>>();
    let of_server = steps("CREATE server");
    assert!(of_server.iter().all(|step| step.parent == nested.id), "{of_server:?}");
    let engines: BTreeSet<&str> = of_server.iter().map(|step| step.pid.as_str()).collect();
    assert!(engines.len() == 2 && engines.contains(first_engine.as_str()), "{of_server:?}");
    assert_eq!(of_server[0].attributes["resource_type"], "OS::Nova::Server");
    let calls: Vec<&Span> = spans.values().filter(|span| span.kind == 3).collect();
    let made: Vec<_> = calls
        .iter()
        .filter(|call| {
            call.name == "POST compute" && call.attributes["url.path"].as_str().unwrap().ends_with("/servers")
        })
        .collect();
    assert!(made.len() == 1 && made[0].attributes["http.response.status_code"] == "202", "{made:?}");
    assert!(of_server.iter().any(|step| step.id == made[0].parent));
    // The cloud is told of the span of its call.
    let journal = cluster.cloud.journal().list();
    let told = journal.iter().find(|call| call.method == "POST" && call.path == "/servers").unwrap();
    assert_eq!(told.traceparent, Some(format!("00-{TRACE}-{}-01", made[0].id)));
    let [network] = &steps("CREATE network")[..] else { panic!("{:?}", steps("CREATE network")) };
    assert_eq!(network.parent, operation.id);
    // Every span leads to the request of the client.
    for span in spans.values() {
        let (mut up, mut depth) = (span, 0);
        while up.parent != CLIENT {
            up = spans.get(&up.parent).unwrap_or_else(|| panic!("{up:?} has no parent"));
            depth += 1;
        }
        assert!(up.id == request.id && depth <= 4, "{span:?}");
    }
    assert!(cluster.engines[0].stop(Duration::from_secs(20)).await.success());
    cluster.end().await;
}
