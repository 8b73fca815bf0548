//! Nothing grows faster than its input: the memory that each request allocates, from the API to the store, for stacks of
//! 200, 400 and 800 resources in several shapes. Allocations are counted, not timed, so the result is the same on every
//! machine. Of linear work the second step costs twice the first one; of quadratic work, four times.

use std::alloc::System;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Method, Request};
use kiln_api::{Api, Parts};
use kiln_engine::{Engine, Options};
use kiln_identity::{Caller, Local};
use kiln_plan::ResourceTypes;
use kiln_resource::{Registry, Status};
use kiln_service::Service;
use kiln_stack::{Backends, Chance, NoCloud, SystemClock};
use kiln_store::{SqlStore, Store};
use kiln_value::Secret;
use serde_json::{Map, Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tower::ServiceExt;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SIZES: [usize; 3] = [200, 400, 800];
/// Bytes that the timing of the engine may change.
const NOISE: usize = 1_000_000;

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

fn request(resources: &Map<String, Value>, outputs: &Map<String, Value>, files: &Value) -> Value {
    let template = json!({"heat_template_version": "2021-04-16", "resources": resources, "outputs": outputs});
    json!({"template": template, "files": files})
}

fn value(value: impl Into<Value>) -> Value {
    let value: Value = value.into();
    json!({"type": "OS::Heat::Value", "properties": {"value": value}})
}

fn attribute(i: usize) -> Value {
    json!({"get_attr": [format!("v{i}"), "value"]})
}

fn all(n: usize, one: impl Fn(usize) -> Value) -> Map<String, Value> {
    (0..n).map(|i| (format!("v{i}"), one(i))).collect()
}

fn independent(n: usize) -> Value {
    request(&all(n, |i| value(format!("x{i}"))), &Map::new(), &json!({}))
}

fn chain(n: usize) -> Value {
    request(&all(n, |i| value(if i == 0 { json!("x") } else { attribute(i - 1) })), &Map::new(), &json!({}))
}

fn fan_in(n: usize) -> Value {
    let mut resources = all(n, |i| value(format!("x{i}")));
    resources.insert("all".to_owned(), value((0..n).map(attribute).collect::<Vec<_>>()));
    request(&resources, &Map::new(), &json!({}))
}

fn fan_out(n: usize) -> Value {
    request(&all(n, |i| value(if i == 0 { json!("x") } else { attribute(0) })), &Map::new(), &json!({}))
}

fn outputs(n: usize) -> Value {
    let outputs = (0..n).map(|i| (format!("o{i}"), json!({ "value": attribute(i) }))).collect();
    request(&all(n, |i| value(format!("x{i}"))), &outputs, &json!({}))
}

fn nested(n: usize) -> Value {
    let child = json!({"heat_template_version": "2021-04-16", "parameters": {"p": {"type": "string"}},
        "resources": {"v": value(json!({"get_param": "p"}))}});
    let one = |i| json!({"type": "child.yaml", "properties": {"p": format!("x{i}")}});
    request(&all(n / 4, one), &Map::new(), &json!({"child.yaml": child.to_string()}))
}

fn group(n: usize) -> Value {
    let members = json!({"type": "OS::Heat::ResourceGroup", "properties": {"count": n, "resource_def": value("x")}});
    request(&Map::from_iter([("group".to_owned(), members)]), &Map::new(), &json!({}))
}

fn ports(n: usize) -> Value {
    let network = json!({"get_resource": "net"});
    let port = |_| json!({"type": "OS::Neutron::Port", "properties": {"network": network}});
    let mut resources = all(n, port);
    resources.insert("net".to_owned(), json!({"type": "OS::Neutron::Net"}));
    let subnet = json!({"type": "OS::Neutron::Subnet", "properties": {"network": network, "cidr": "10.0.0.0/16"}});
    resources.insert("subnet".to_owned(), subnet);
    request(&resources, &Map::new(), &json!({}))
}

/// The project of the user.
const PROJECT: &str = "tenant1";

/// The API, with an engine and without a cloud.
struct App {
    router: Router,
    store: Arc<dyn Store>,
}

impl App {
    async fn start() -> Self {
        let key = Secret::new("0123456789abcdef0123456789abcdef".to_owned());
        let store = SqlStore::open(kiln_store::Options::new("sqlite::memory:", key)).await.expect("a store");
        store.migrate().await.expect("a schema");
        let store: Arc<dyn Store> = Arc::new(store);
        let types = kiln_resource::shipped::types().expect("definitions");
        let backends = Backends {
            store: Arc::clone(&store),
            resource_types: Arc::new(ResourceTypes::new(Registry::build(types, kiln_drivers::driver_for))),
            clouds: Arc::new(NoCloud),
            clock: Arc::new(SystemClock),
            chance: Arc::new(Chance::seeded(1)),
            caches: Arc::default(),
        };
        let engine = Engine::new(Options::default(), backends.clone());
        tokio::spawn(async move {
            let (_stop, stopped) = tokio::sync::watch::channel(false);
            engine.run(stopped).await.expect("the engine runs");
        });
        let service = Service {
            templates: None,
            shared: kiln_service::SharedCredentials::default(),
            heat_projects: std::sync::Arc::default(),
            options: kiln_service::Options::default(),
            backends,
            recent: Arc::default(),
            identity: Arc::new(Local::of(user(), Secret::new("{}".to_owned()))),
            policy: Arc::new(kiln_api::policy(true)),
        };
        let api = Api::new(Parts { options: kiln_api::Options::default(), service });
        Self { router: api.router(), store }
    }

    /// Sends a request, which must succeed.
    async fn send(&self, method: Method, path: &str, body: &Value) {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = request.header("content-type", "application/json").header("content-length", body.len());
        let request = request.body(Body::from(body)).expect("a request");
        let response = self.router.clone().oneshot(request).await.expect("an answer");
        let status = response.status();
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        assert!(status.is_success(), "{path}: {status} {}", String::from_utf8_lossy(&bytes));
    }

    /// Waits until the operation of the stack ends.
    async fn settled(&self, name: &str) {
        loop {
            match self.store.stack_by_name(PROJECT, name).await.expect("read") {
                Some(stack) if stack.state.status == Status::InProgress => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Some(stack) => return assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason),
                None => return,
            }
        }
    }
}

fn user() -> Caller {
    Caller {
        user_id: "alice-id".into(),
        username: "alice".into(),
        user_domain_id: "default".into(),
        project_id: PROJECT.into(),
        project_name: "demo".into(),
        project_domain_id: "default".into(),
        roles: ["member", "reader"].map(str::to_owned).into(),
        is_admin: false,
        is_admin_project: true,
        by_trust: false,
        trust_end: None,
        login: None,
        is_system: false,
        catalog: None,
        token: None,
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
    note("template");
    app.send(Method::POST, &format!("/v1/{PROJECT}/validate"), &validate).await;
    note("validate");
    body["stack_name"] = name.clone().into();
    app.send(Method::POST, &format!("{stacks}/preview"), &body).await;
    note("preview");
    app.send(Method::POST, &format!("{stacks}/preview?resource_changes=true"), &body).await;
    note("plan of a create");
    if !shape.runs {
        return found;
    }
    app.send(Method::POST, &stacks, &body).await;
    app.settled(&name).await;
    note("create");
    let stack = app.store.stack_by_name(PROJECT, &name).await.expect("read").expect("a stack");
    let path = format!("{stacks}/{name}/{}", stack.id);
    for (what, path) in
        [("show", path.clone()), ("resources", format!("{path}/resources")), ("events", format!("{path}/events"))]
    {
        app.send(Method::GET, &path, &Value::Null).await;
        note(what);
    }
    let update = json!({"template": body["template"], "files": body["files"]});
    app.send(Method::PUT, &format!("{path}/preview"), &update).await;
    note("preview of an update");
    app.send(Method::PUT, &path, &update).await;
    app.settled(&name).await;
    note("update");
    app.send(Method::DELETE, &path, &Value::Null).await;
    app.settled(&name).await;
    note("delete");
    found
}

/// The first shape of a process that measures every second shape; the test starts one for each half.
const HALF: &str = "KILN_GROWTH_HALF";

/// The allocator counts what the whole process allocates, so shapes are measured at the same time in two processes.
#[test]
fn requests_allocate_in_proportion_to_their_stacks() {
    if let Some(half) = std::env::var_os(HALF) {
        let half = usize::from(half == "1");
        return compare(SHAPES.iter().skip(half).step_by(2));
    }
    let program = std::env::current_exe().expect("this program");
    let halves = ["0", "1"].map(|half| {
        let mut program = Command::new(&program);
        program
            .arg("--nocapture")
            .env(HALF, half)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a half")
    });
    for half in halves {
        let ran = half.wait_with_output().expect("a half");
        let [out, err] = [&ran.stdout, &ran.stderr].map(|text| String::from_utf8_lossy(text));
        println!("{out}");
        assert!(ran.status.success(), "{out}{err}");
    }
}

/// The requests of a shape that grow faster than the stack.
async fn measured(app: &App, shape: &Shape) -> Vec<String> {
    let [small, middle, large] = SIZES;
    let small = requests(app, shape, small).await;
    let middle = requests(app, shape, middle).await;
    let large = requests(app, shape, large).await;
    let mut wrong = Vec::new();
    for (((what, small), (_, middle)), (_, large)) in small.into_iter().zip(middle).zip(large) {
        let (first, second) = (middle.saturating_sub(small), large.saturating_sub(middle));
        let line = format!("{:<22} {what:<22} {small:>10} {middle:>10} {large:>10}", shape.name);
        println!("{line}");
        if second > 27 * first / 10 + NOISE {
            wrong.push(line);
        }
    }
    wrong
}

#[tokio::main(worker_threads = 2)]
async fn compare(shapes: impl Iterator<Item = &'static Shape>) {
    let app = App::start().await;
    let mut wrong = Vec::new();
    for shape in shapes {
        requests(&app, shape, 10).await;
        // Twice, if the first time something else has allocated too.
        let mut found = measured(&app, shape).await;
        if !found.is_empty() {
            found = measured(&app, shape).await;
        }
        wrong.extend(found);
    }
    assert!(wrong.is_empty(), "these grow faster than the stack:\n{}", wrong.join("\n"));
}
