//! Wait conditions: they end with the signal that completes them, not with the next poll.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kiln_drivers::heat::wait_handle::WaitHandle;
use kiln_plan::{ResourceTypes, Sources};
use kiln_resource::{
    Action, Context, Driver, Failure, Found, Operation, Received, Registry, Resource, StackId, Status, Step, TypeRules,
};
use kiln_stack::{Backends, load};
use kiln_store::{EventQuery, MessageBody, Stack, StackRequest};
use kiln_template::Files;
use kiln_template::environment::Environment;
use kiln_value::{Map, Value, text, value};

use super::cluster::{Cluster, Running, done};
use super::{message, near};

/// A handle without a user.
struct UserlessHandle;

impl TypeRules for UserlessHandle {}

#[async_trait]
impl Driver for UserlessHandle {
    async fn start(&self, cx: &Context<'_>, _: &Operation) -> Result<Step, Failure> {
        Ok(Step::done().id(&cx.facts.physical_name))
    }

    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    async fn attributes(&self, _: &Context<'_>, _: &[&str]) -> Result<Map, Failure> {
        Ok(Map::new())
    }

    async fn receive(&self, cx: &Context<'_>, message: &Value) -> Result<Received, Failure> {
        WaitHandle::Heat.receive(cx, message).await
    }

    fn needs_cloud(&self) -> bool {
        false
    }
}

const TIMEOUT: i64 = 600;

fn sources(count: i64, resources: Value) -> Sources {
    let condition = value!({"type": "OS::Heat::WaitCondition",
        "properties": {"handle": {"get_resource": "one"}, "timeout": TIMEOUT, "count": count}});
    let mut all = value!({"one": {"type": "OS::Heat::WaitConditionHandle"}, "wait": condition});
    if let (Some(all), Value::Map(more)) = (all.as_map_mut(), resources) {
        all.extend(more);
    }
    let outputs = value!({"data": {"value": {"get_attr": ["wait", "data"]}}});
    Sources {
        template: Arc::new(value!({"heat_template_version": "2018-08-31", "resources": all, "outputs": outputs})),
        environment: Arc::new(Environment::default()),
        files: Arc::new(Files::default()),
    }
}

struct Waits {
    cluster: Cluster,
    id: StackId,
    engine: Running,
}

impl Waits {
    /// A stack that waits for `count` signals.
    async fn of(count: i64) -> Self {
        let mut cluster = Cluster::new(|_, _, _| done());
        let types = kiln_resource::shipped::types().expect("sound definitions");
        let registry = Registry::build(types, |kind| match kind.name.as_str() {
            "OS::Heat::WaitConditionHandle" => Some(Arc::new(UserlessHandle) as Arc<dyn Driver>),
            _ => kiln_drivers::driver_for(kind),
        });
        let resource_types = Arc::new(ResourceTypes::new(registry));
        cluster.backends = Backends { resource_types, ..cluster.backends };
        let engine = cluster.engine();
        let id = cluster.create_from(&sources(count, value!({}))).await;
        Self { cluster, id, engine }
    }

    async fn signal(&self, body: Value) {
        let signal = message(&self.cluster, self.id, MessageBody::Signal(body));
        self.cluster.backends.store.send(&signal).await.expect("sent");
    }

    async fn update(&self, sources: &Sources) {
        let mut request = StackRequest::new(Action::Update, self.cluster.backends.clock.now());
        request.desired = Some(load::texts(sources));
        self.cluster.backends.store.request(self.id, request).await.expect("stored");
    }

    async fn settled(&self) -> (Stack, f64) {
        self.cluster.settled(self.id).await
    }

    async fn row(&self, name: &str) -> Resource {
        self.cluster.rows(self.id).await.into_iter().find(|row| row.name == name).expect("a row")
    }

    async fn metadata(&self) -> String {
        text::json(&self.row("one").await.metadata)
    }

    async fn data(&self) -> Value {
        let view = kiln_stack::LoadedStack::load(&self.cluster.backends, self.id).await.expect("read").expect("there");
        view.outputs(None).await.into_iter().next().expect("an output").value
    }
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_condition_ends_with_its_last_signal() {
    let waits = Waits::of(3).await;
    seconds(100).await;
    // The same signal twice counts once.
    for body in [value!({"id": "a", "data": "x"}), value!({"id": "a", "data": "y"}), value!({"id": "b"})] {
        waits.signal(body).await;
        seconds(1).await;
    }
    seconds(20).await;
    let row = waits.row("wait").await;
    assert_eq!(row.state.status, Status::InProgress);
    waits.signal(Value::Null).await;
    let (stack, at) = waits.settled().await;
    assert_eq!((stack.state.to_string().as_str(), near(at, 123.0)), ("CREATE_COMPLETE", true), "{at} {stack:?}");
    assert_eq!(waits.data().await, Value::from(r#"{"a": "y", "b": null, "3": null}"#));
    // A settled stack records signals too.
    waits.signal(value!({"id": "late", "data": 1})).await;
    seconds(1).await;
    assert_eq!(waits.data().await, Value::from(r#"{"a": "y", "b": null, "3": null, "late": 1}"#));
    waits.engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_failure_ends_a_condition_at_once() {
    let waits = Waits::of(2).await;
    seconds(100).await;
    waits.signal(value!({"status": "SUCCESS"})).await;
    waits.signal(value!({"status": "wrong"})).await;
    waits.signal(value!({"status": "FAILURE", "reason": "no disk"})).await;
    let (stack, at) = waits.settled().await;
    assert!(near(at, 100.0), "{at}");
    assert_eq!(stack.reason, "Resource CREATE failed: WaitConditionFailure: resources.wait: no disk");
    let query = EventQuery { stacks: vec![waits.id], ..EventQuery::default() };
    let events = waits.cluster.backends.store.events(&query).await.expect("read");
    let reasons: Vec<&str> =
        events.iter().filter(|event| event.action == "SIGNAL").map(|event| event.reason.as_str()).collect();
    assert_eq!(
        reasons,
        ["Signal: status:SUCCESS reason:Signal 1 received", "Signal: status:FAILURE reason:no disk"],
        "an invalid signal has no event"
    );
    waits.engine.kill();
}

#[tokio::test(start_paused = true)]
async fn a_condition_times_out_also_in_another_engine() {
    for (signals, text) in [(0, "0 of 2 received"), (1, "1 of 2 received - Signal 1 received")] {
        let waits = Waits::of(2).await;
        seconds(100).await;
        for _ in 0..signals {
            waits.signal(Value::Null).await;
        }
        seconds(1).await;
        let Waits { cluster, id, engine } = waits;
        engine.kill();
        seconds(200).await;
        let waits = Waits { engine: cluster.engine(), cluster, id };
        let (stack, at) = waits.settled().await;
        assert!(near(at, 600.0), "{at}");
        assert_eq!(stack.reason, format!("Resource CREATE failed: WaitConditionTimeout: resources.wait: {text}"));
        waits.engine.kill();
    }
}

#[tokio::test(start_paused = true)]
async fn a_signal_between_two_engines_counts() {
    let waits = Waits::of(1).await;
    seconds(10).await;
    let Waits { cluster, id, engine } = waits;
    engine.kill();
    let signal = message(&cluster, id, MessageBody::Signal(Value::Null));
    cluster.backends.store.send(&signal).await.expect("sent");
    seconds(30).await;
    let waits = Waits { engine: cluster.engine(), cluster, id };
    let (stack, at) = waits.settled().await;
    assert!(stack.state.is_complete(Action::Create) && at < 60.0, "{at} {stack:?}");
    waits.engine.kill();
}

#[tokio::test(start_paused = true)]
async fn an_update_waits_again_and_a_delete_forgets_the_signals() {
    let waits = Waits::of(1).await;
    seconds(1).await;
    waits.signal(value!({"id": "a"})).await;
    waits.settled().await;
    // Another count is an update in place: the signals still count.
    waits.update(&sources(2, value!({}))).await;
    seconds(50).await;
    assert_eq!(waits.row("wait").await.state.to_string(), "UPDATE_IN_PROGRESS");
    waits.signal(value!({"id": "b"})).await;
    let (stack, at) = waits.settled().await;
    assert!(stack.state.is_complete(Action::Update) && near(at, 51.0), "{at} {stack:?}");
    // An update that does not concern the handle keeps its signals.
    waits.update(&sources(2, value!({"more": {"type": "OS::Heat::None", "depends_on": "one"}}))).await;
    waits.settled().await;
    assert!(waits.metadata().await.contains("\"b\""));
    // Without the condition, the signals are forgotten.
    let mut alone = sources(2, value!({}));
    alone.template = Arc::new(value!({"heat_template_version": "2018-08-31",
        "resources": {"one": {"type": "OS::Heat::WaitConditionHandle"}}}));
    waits.update(&alone).await;
    waits.settled().await;
    assert_eq!(waits.metadata().await, "{}");
    waits.engine.kill();
}
