//! Objects that others have changed between the request of a saved plan and its calls.

use kiln_plan::{Blueprint, Nesting, Sources};
use kiln_resource::{Cloud as _, CloudRequest, Method, PlanId, StackId, Status};
use kiln_stack::{LoadedStack, load};
use kiln_store::Stack;
use kiln_value::{Value, value};
use kiln_view::preview::Terms;

use super::{Bench, sources_of, types};

const WEB: &str = "
heat_template_version: 2018-08-31
parameters: {name: {type: string, default: ant}, image: {type: string, default: golden}}
resources:
  net: {type: OS::Neutron::Net, properties: {name: {get_param: name}}}
  server:
    type: OS::Nova::Server
    properties: {name: web, image: {get_param: image}, image_update_policy: REPLACE, flavor: tiny, networks: [{network: lan}]}
  volume: {type: OS::Cinder::Volume, properties: {name: data, size: 1}}
";

fn without_volume() -> String {
    WEB.lines().filter(|line| !line.contains("volume:")).collect::<Vec<_>>().join("\n")
}

/// A stack, and a saved plan of its update.
struct Planned {
    bench: Bench,
    id: StackId,
    sources: Sources,
    plan: PlanId,
}

impl Planned {
    async fn new(template: &str, parameters: Value) -> Self {
        let bench = Bench::new(1, &types()).await;
        let id = bench.create(&sources_of(WEB, value!({}))).await;
        let made = bench.settled(id).await;
        assert_eq!(made.state.status, Status::Complete, "{}", made.reason);
        let sources = sources_of(template, parameters);
        let view = LoadedStack::load(&bench.backends, id).await.expect("read").expect("there");
        let identity = load::identity(&view.stack);
        let blueprint = Blueprint::build(sources.clone(), &types(), identity, Nesting::default()).expect("valid");
        let preview = bench.preview_of(view, blueprint, Terms::default()).await;
        let plan = crate::stack::save_plan(&bench.backends, &preview).await;
        Self { bench, id, sources, plan }
    }

    async fn object(&self, resource: &str) -> String {
        let rows = self.bench.backends.store.resources(self.id).await.expect("read");
        rows.into_iter().find(|row| row.name == resource).and_then(|row| row.physical_id).expect("an object")
    }

    /// Somebody sends a request about the object of a resource.
    async fn intrude(&self, method: Method, (service, path, resource): (&str, &str, &str), body: Value) {
        let path = format!("{path}/{}", self.object(resource).await);
        let request = CloudRequest::new(service, method, &path);
        let request = if body.is_null() { request } else { request.body(body) };
        self.bench.world.demo.call(request).await.expect("accepted");
    }

    /// The end of the update, and the requests that changed something.
    async fn executed(&self) -> (Stack, Vec<String>) {
        self.bench.recorder.take();
        let stack = self.bench.update_planned(self.id, &self.sources, false, Some(self.plan)).await;
        let calls = self.bench.recorder.take().into_iter();
        let changing = calls.filter(|call| call.method != "GET" && call.service != "identity");
        let changing = changing.map(|call| format!("{} {}", call.method, call.service)).collect();
        self.bench.engine.abort();
        (stack, changing)
    }
}

const NET: (&str, &str, &str) = ("network", "/v2.0/networks", "net");
const SERVER: (&str, &str, &str) = ("compute", "/servers", "server");
const VOLUME: (&str, &str, &str) = ("volumev3", "/volumes", "volume");

#[track_caller]
fn stopped(stack: &Stack, resource: &str, what: &str, plan: PlanId) {
    let text = format!("resources.{resource}: {what} since the plan {plan} was accepted");
    assert!(stack.reason.contains("ObjectMoved") && stack.reason.ends_with(&text), "{}", stack.reason);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_others_changed_is_not_updated() {
    let planned = Planned::new(WEB, value!({"name": "bee"})).await;
    planned.intrude(Method::Put, NET, value!({"network": {"name": "cat"}})).await;
    let (stack, changing) = planned.executed().await;
    stopped(&stack, "net", "others have changed name", planned.plan);
    assert_eq!(changing, [""; 0], "no request");
    assert!(!stack.reason.contains("cat"), "values may be hidden");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_others_deleted_is_not_updated() {
    let planned = Planned::new(WEB, value!({"name": "bee"})).await;
    planned.intrude(Method::Delete, NET, Value::Null).await;
    let (stack, changing) = planned.executed().await;
    stopped(&stack, "net", "its object does not exist any more", planned.plan);
    assert_eq!(changing, [""; 0], "no request");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_others_changed_is_not_deleted() {
    let planned = Planned::new(&without_volume(), value!({})).await;
    planned.intrude(Method::Put, VOLUME, value!({"volume": {"name": "theirs"}})).await;
    let (stack, changing) = planned.executed().await;
    stopped(&stack, "volume", "others have changed name", planned.plan);
    assert_eq!(changing, [""; 0], "no request");
}

/// As in each delete: what is gone is not in the way.
#[tokio::test(start_paused = true)]
async fn an_object_that_others_deleted_needs_no_delete() {
    let planned = Planned::new(&without_volume(), value!({})).await;
    planned.intrude(Method::Delete, VOLUME, Value::Null).await;
    let (stack, _) = planned.executed().await;
    assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_others_changed_is_not_replaced() {
    let planned = Planned::new(WEB, value!({"image": "plain"})).await;
    planned.intrude(Method::Put, SERVER, value!({"server": {"name": "theirs"}})).await;
    let (stack, changing) = planned.executed().await;
    stopped(&stack, "server", "others have changed name", planned.plan);
    assert_eq!(changing, [""; 0], "no replacement is created");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_nobody_changed_is_read_once_more_for_each_operation() {
    let planned = Planned::new(WEB, value!({"name": "bee", "image": "plain"})).await;
    let (stack, changing) = planned.executed().await;
    assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
    let mut changing = changing;
    changing.sort();
    assert_eq!(changing, ["DELETE compute", "POST compute", "PUT network"]);
}
