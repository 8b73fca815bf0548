//! Nothing grows faster than its input: the memory that each request allocates, from the API to the store, for stacks of
//! 200, 400 and 800 resources in several shapes. Allocations are counted, not timed, so the result is the same on every
//! machine. For linear work the second step costs twice the first one; for quadratic work, four times.

#[path = "api/support.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod support;

use std::alloc::System;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use kiln_engine::{Engine, Options, SystemClock};
use kiln_resource::Status;
use serde_json::{Map, Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use support::{App, PROJECT};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SIZES: [usize; 3] = [200, 400, 800];
/// 2 is linear; the rest is for tables that double, and for the poll of the engine.
const LIMIT: f64 = 2.7;
/// Bytes that the timing of the engine may change.
const NOISE: f64 = 1_000_000.0;

/// A template with files.
struct Shape {
    name: &'static str,
    of: fn(usize) -> Value,
    /// Whether the stack can be created without a cloud.
    runs: bool,
}

const SHAPES: &[Shape] = &[
    Shape { name: "independent", of: independent, runs: true },
    Shape { name: "chain", of: chain, runs: true },
    Shape { name: "fan-in", of: fan_in, runs: true },
    Shape { name: "fan-out", of: fan_out, runs: true },
    Shape { name: "outputs", of: outputs, runs: true },
    Shape { name: "nested", of: nested, runs: true },
    Shape { name: "group", of: group, runs: true },
    Shape { name: "ports of one network", of: ports, runs: false },
];

fn request(resources: Map<String, Value>, outputs: Map<String, Value>, files: Value) -> Value {
    let template = json!({"heat_template_version": "2021-04-16", "resources": resources, "outputs": outputs});
    json!({"template": template, "files": files})
}

fn value(value: Value) -> Value {
    json!({"type": "OS::Heat::Value", "properties": {"value": value}})
}

fn attribute(i: usize) -> Value {
    json!({"get_attr": [format!("v{i}"), "value"]})
}

fn all(n: usize, one: impl Fn(usize) -> Value) -> Map<String, Value> {
    (0..n).map(|i| (format!("v{i}"), one(i))).collect()
}

fn independent(n: usize) -> Value {
    request(all(n, |i| value(format!("x{i}").into())), Map::new(), json!({}))
}

fn chain(n: usize) -> Value {
    request(all(n, |i| value(if i == 0 { "x".into() } else { attribute(i - 1) })), Map::new(), json!({}))
}

fn fan_in(n: usize) -> Value {
    let mut resources = all(n, |i| value(format!("x{i}").into()));
    resources.insert("all".to_owned(), value((0..n).map(attribute).collect()));
    request(resources, Map::new(), json!({}))
}

fn fan_out(n: usize) -> Value {
    request(all(n, |i| value(if i == 0 { "x".into() } else { attribute(0) })), Map::new(), json!({}))
}

fn outputs(n: usize) -> Value {
    let outputs = (0..n).map(|i| (format!("o{i}"), json!({ "value": attribute(i) }))).collect();
    request(all(n, |i| value(format!("x{i}").into())), outputs, json!({}))
}

fn nested(n: usize) -> Value {
    let child = json!({"heat_template_version": "2021-04-16", "parameters": {"p": {"type": "string"}},
        "resources": {"v": value(json!({"get_param": "p"}))}});
    let one = |i| json!({"type": "child.yaml", "properties": {"p": format!("x{i}")}});
    request(all(n / 4, one), Map::new(), json!({"child.yaml": child.to_string()}))
}

fn group(n: usize) -> Value {
    let members =
        json!({"type": "OS::Heat::ResourceGroup", "properties": {"count": n, "resource_def": value("x".into())}});
    request(Map::from_iter([("group".to_owned(), members)]), Map::new(), json!({}))
}

fn ports(n: usize) -> Value {
    let network = json!({"get_resource": "net"});
    let port = |_| json!({"type": "OS::Neutron::Port", "properties": {"network": network}});
    let mut resources = all(n, port);
    resources.insert("net".to_owned(), json!({"type": "OS::Neutron::Net"}));
    let subnet = json!({"type": "OS::Neutron::Subnet", "properties": {"network": network, "cidr": "10.0.0.0/16"}});
    resources.insert("subnet".to_owned(), subnet);
    request(resources, Map::new(), json!({}))
}

/// Waits until the operation of the stack ends.
async fn settled(app: &App, name: &str) {
    loop {
        match app.store.stack_by_name(PROJECT, name).await.expect("read") {
            Some(stack) if stack.state.status == Status::InProgress => {
                tokio::time::sleep(Duration::from_millis(10)).await
            }
            Some(stack) => return assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason),
            None => return,
        }
    }
}

/// The bytes that each request allocates, in the order of the requests.
async fn requests(app: &App, shape: &Shape, n: usize) -> Vec<(&'static str, usize)> {
    let stacks = format!("/v1/{PROJECT}/stacks");
    let mut body = (shape.of)(n);
    let name = format!("s{n}");
    let mut found = Vec::new();
    let mut before = ALLOCATOR.stats().bytes_allocated;
    let mut note = |what| {
        let now = ALLOCATOR.stats().bytes_allocated;
        found.push((what, now - before));
        before = ALLOCATOR.stats().bytes_allocated;
    };
    let validate = json!({"template": body["template"], "files": body["files"]});
    note("");
    let send = async |method: Method, path: &str, body: &Value| {
        let answer = app.json(method, path, body).await;
        assert!(answer.status.is_success(), "{path}: {} {}", answer.status, answer.text);
    };
    send(Method::POST, &format!("/v1/{PROJECT}/validate"), &validate).await;
    note("validate");
    body["stack_name"] = name.clone().into();
    send(Method::POST, &format!("{stacks}/preview"), &body).await;
    note("preview");
    if !shape.runs {
        return found;
    }
    send(Method::POST, &stacks, &body).await;
    settled(app, &name).await;
    note("create");
    let stack = app.store.stack_by_name(PROJECT, &name).await.expect("read").expect("a stack");
    let path = format!("{stacks}/{name}/{}", stack.id);
    for (what, path) in
        [("show", path.clone()), ("resources", format!("{path}/resources")), ("events", format!("{path}/events"))]
    {
        let answer = app.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        note(what);
    }
    let update = json!({"template": body["template"], "files": body["files"]});
    send(Method::PUT, &format!("{path}/preview"), &update).await;
    note("preview of an update");
    send(Method::PUT, &path, &update).await;
    settled(app, &name).await;
    note("update");
    send(Method::DELETE, &path, &Value::Null).await;
    settled(app, &name).await;
    note("delete");
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_allocate_in_proportion_to_their_stacks() {
    let app = App::new().await.with_clock(Arc::new(SystemClock));
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let engine = Engine::new(Options::default(), app.backends());
    tokio::spawn(async move { engine.run(stopped).await.expect("the engine runs") });
    let mut wrong = Vec::new();
    for shape in SHAPES {
        requests(&app, shape, 10).await;
        let mut sizes = Vec::new();
        for n in SIZES {
            sizes.push(requests(&app, shape, n).await);
        }
        for at in 1..sizes[0].len() {
            let [small, middle, large] = [sizes[0][at].1, sizes[1][at].1, sizes[2][at].1].map(|bytes| bytes as f64);
            let growth = (large - middle) / (middle - small);
            let line = format!(
                "{:<22} {:<22} {:>10} {:>10} {:>10}  {growth:.2}",
                shape.name, sizes[0][at].0, small, middle, large
            );
            println!("{line}");
            if large - middle > LIMIT * (middle - small) + NOISE {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "these grow faster than the stack:\n{}", wrong.join("\n"));
}
