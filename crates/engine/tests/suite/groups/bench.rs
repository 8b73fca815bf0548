//! Engines with the shipped types, a store in memory and paused time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_engine::{Engine, Options};
use kiln_plan::hidden::HiddenValues;
use kiln_plan::{Blueprint, Nesting, ResourceTypes, Sources};
use kiln_resource::{Action, MessageId, PlanId, Registry, Resource, StackId, Status, shipped};
use kiln_stack::{Backends, Chance, Clock, Clouds, LoadedStack, NoCloud, load};
use kiln_store::{Event, EventQuery, MemoryStore, Message, MessageBody, NewStack, Planned, Stack, StackRequest};
use kiln_template::Files;
use kiln_template::environment::Environment;
use kiln_value::{Map, Value, text, value};
use kiln_view::preview::{self, Preview, Terms};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Paused time since the start of the test.
#[derive(Clone, Copy)]
struct PausedClock(Instant);

#[async_trait]
impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000).expect("a time") + self.0.elapsed()
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// A running engine.
pub(crate) struct Running(JoinHandle<()>);

impl Running {
    /// Like kill -9.
    pub(crate) fn kill(self) {
        self.0.abort();
    }
}

/// Store and time of a test.
pub(crate) struct Bench {
    pub(crate) backends: Backends,
    /// The store of the backends.
    pub(crate) store: MemoryStore,
    start: Instant,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with_clouds(Arc::new(NoCloud))
    }

    pub(crate) fn with_clouds(clouds: Arc<dyn Clouds>) -> Self {
        let start = Instant::now();
        let clock = PausedClock(start);
        let types = shipped::types().expect("types");
        let store = MemoryStore::new(Arc::new(move || clock.now()));
        let backends = Backends {
            store: Arc::new(store.clone()),
            resource_types: Arc::new(ResourceTypes::new(Registry::build(types, kiln_drivers::driver_for))),
            clouds,
            clock: Arc::new(clock),
            chance: Arc::new(Chance::seeded(7)),
            caches: Arc::default(),
        };
        Self { backends, store, start }
    }

    pub(crate) fn engine(&self) -> Running {
        self.engine_with(Options::default())
    }

    pub(crate) fn engine_with(&self, options: Options) -> Running {
        let engine = Engine::new(options, self.backends.clone());
        Running(tokio::spawn(async move {
            let (_stop, stopped) = watch::channel(false);
            engine.run(stopped).await.expect("the engine runs");
        }))
    }

    /// An engine with more parts.
    pub(crate) fn engine_of(&self, with: impl FnOnce(Engine) -> Engine) -> Running {
        let engine = with(Engine::new(Options::default(), self.backends.clone()));
        Running(tokio::spawn(async move {
            let (_stop, stopped) = watch::channel(false);
            engine.run(stopped).await.expect("the engine runs");
        }))
    }

    /// Requests a stack with this template.
    pub(crate) async fn create(&self, template: &str, timeout_mins: Option<i64>) -> StackId {
        self.request("demo", "s", template, timeout_mins).await
    }

    /// Requests a stack with this template in a project.
    pub(crate) async fn create_in(&self, project: &str, name: &str, template: &str) -> StackId {
        self.request(project, name, template, None).await
    }

    async fn request(&self, project: &str, name: &str, template: &str, timeout_mins: Option<i64>) -> StackId {
        let id = StackId(self.backends.chance.uuid());
        let stack = NewStack {
            timeout_mins,
            username: "demo".to_owned(),
            user_id: "demo".to_owned(),
            ..NewStack::new(
                id,
                name.to_owned(),
                project.to_owned(),
                load::texts(&sources(template)),
                self.backends.clock.now(),
            )
        };
        self.backends.store.create_stack(stack).await.expect("stored");
        id
    }

    /// Requests an update to a template with additional files.
    pub(crate) async fn update_with(&self, id: StackId, template: &str, more: &[(&str, &str)]) {
        let sources = sources_with(template, more);
        let mut request = StackRequest::new(Action::Update, self.backends.clock.now());
        request.desired = Some(load::texts(&sources));
        self.backends.store.request(id, request).await.expect("stored");
    }

    /// Requests a new stack by a plan.
    pub(crate) async fn create_planned(&self, template: &str, more: &[(&str, &str)]) -> StackId {
        let (id, sources) = (StackId(self.backends.chance.uuid()), sources_with(template, more));
        let (texts, now) = (load::texts(&sources), self.backends.clock.now());
        let mut new = NewStack::new(id, "s".to_owned(), "demo".to_owned(), texts, now);
        let stack = Stack { generation: 0, ..Stack::started(&new) };
        let types = &self.backends.resource_types;
        let blueprint = Blueprint::build(sources, types, load::identity(&stack), Nesting::default());
        let blueprint = Arc::new(blueprint.expect("a valid template"));
        let mut hidden = HiddenValues::default();
        let preview = preview::preview_create(&self.backends, &stack, blueprint, &mut hidden).await.expect("a plan");
        let plan = crate::stack::save_plan(&self.backends, &preview).await;
        new.planned = Some(Planned { plan, path: String::new() });
        self.backends.store.create_stack(new).await.expect("stored");
        id
    }

    /// Requests an update that keeps to a plan.
    pub(crate) async fn update_planned(&self, id: StackId, template: &str, more: &[(&str, &str)], plan: PlanId) {
        let mut request = StackRequest::new(Action::Update, self.backends.clock.now());
        request.desired = Some(load::texts(&sources_with(template, more)));
        request.details.planned = Some(Planned { plan, path: String::new() });
        self.backends.store.request(id, request).await.expect("stored");
    }

    pub(crate) async fn update(&self, id: StackId, template: &str) {
        let mut request = StackRequest::new(Action::Update, self.backends.clock.now());
        request.desired = Some(load::texts(&sources(template)));
        self.backends.store.request(id, request).await.expect("stored");
    }

    pub(crate) async fn ask(&self, id: StackId, action: Action) {
        let request = StackRequest::new(action, self.backends.clock.now());
        self.backends.store.request(id, request).await.expect("stored");
        self.completed(id).await;
    }

    /// The plan of an update.
    pub(crate) async fn preview(&self, id: StackId, template: &str) -> Preview {
        self.preview_with(id, template, &[]).await
    }

    /// The plan of an update to a template with additional files.
    pub(crate) async fn preview_with(&self, id: StackId, template: &str, more: &[(&str, &str)]) -> Preview {
        let mut view = LoadedStack::load(&self.backends, id).await.expect("read").expect("there");
        let identity = load::identity(&view.stack);
        let types = &self.backends.resource_types;
        let new = Blueprint::build(sources_with(template, more), types, identity, Nesting::default());
        let new = new.expect("a valid template");
        preview::preview(&self.backends, &mut view, Arc::new(new), Terms::default(), &mut HiddenValues::default())
            .await
            .expect("a plan")
    }

    /// The stack after its request, which must have completed, and the time in seconds since the start.
    pub(crate) async fn completed(&self, id: StackId) -> f64 {
        let stack = self.settled(id).await;
        assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
        self.start.elapsed().as_secs_f64()
    }

    pub(crate) async fn settled(&self, id: StackId) -> Stack {
        loop {
            let stack = self.backends.store.stack(id).await.expect("read").expect("there");
            if !stack.is_pending() {
                return stack;
            }
            assert!(self.start.elapsed() < Duration::from_hours(5), "stuck: {stack:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Sends a signal to a resource.
    pub(crate) async fn signal(&self, stack: StackId, resource: &str, body: Value) {
        self.send(stack, Some(resource), MessageBody::Signal(body)).await;
    }

    pub(crate) async fn send(&self, stack: StackId, resource: Option<&str>, body: MessageBody) {
        let (id, now) = (MessageId(self.backends.chance.uuid()), self.backends.clock.now());
        let resource = resource.map(str::to_owned);
        let message = Message { id, stack, resource, body, due: now, sent: now };
        self.backends.store.send(&message).await.expect("sent");
    }

    /// Waits until no message is left.
    pub(crate) async fn quiet(&self, stack: StackId) {
        while !self.backends.store.inbox(stack, self.backends.clock.now()).await.expect("read").is_empty() {
            assert!(self.start.elapsed() < Duration::from_hours(5), "stuck");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The values of the outputs.
    pub(crate) async fn outputs(&self, stack: StackId) -> Map {
        let view = LoadedStack::load(&self.backends, stack).await.expect("read").expect("there");
        view.outputs(None).await.into_iter().map(|output| (output.key, output.value)).collect()
    }

    /// The reasons of the events about signals, with the names of their resources.
    pub(crate) async fn signals(&self, stack: StackId) -> Vec<String> {
        let events = self.events(stack).await.into_iter().filter(|event| event.action == "SIGNAL");
        events.map(|event| format!("{} {} {}", event.resource_name, event.status, event.reason)).collect()
    }

    /// The row of a name.
    pub(crate) async fn row(&self, stack: StackId, name: &str) -> Resource {
        let rows = self.backends.store.resources(stack).await.expect("read");
        rows.into_iter().find(|row| row.name == name).expect("a row")
    }

    /// The nested stack of a resource.
    pub(crate) async fn child(&self, stack: StackId, name: &str) -> StackId {
        self.row(stack, name).await.child.expect("a nested stack")
    }

    /// The members of a nested stack as `name=value`, sorted.
    pub(crate) async fn members(&self, child: StackId) -> Vec<String> {
        let rows = self.backends.store.resources(child).await.expect("read");
        let value = |row: &Resource| text::str(row.properties().get("value").unwrap_or(&Value::Null));
        let mut members: Vec<String> = rows.iter().map(|row| format!("{}={}", row.name, value(row))).collect();
        members.sort();
        members
    }

    /// The events of a stack in order.
    pub(crate) async fn events(&self, stack: StackId) -> Vec<Event> {
        let query = EventQuery { stacks: vec![stack], ..EventQuery::default() };
        self.backends.store.events(&query).await.expect("read")
    }

    /// Seconds since the start of the test.
    pub(crate) fn seconds(time: Timestamp) -> i64 {
        time.as_second() - 1_800_000_000
    }
}

/// The template may use instances of EC2: this one stands for them.
const INSTANCE: &str = "heat_template_version: 2015-04-30
parameters:
  ImageId: {type: string}
  InstanceType: {type: string}
  UserData: {type: string, default: ''}
  Tags: {type: comma_delimited_list, default: ''}
resources:
  one: {type: OS::Heat::TestResource, properties: {value: {get_param: UserData}, wait_secs: 1}}
outputs:
  PublicIp: {value: {get_attr: [one, output]}}
";

pub(crate) fn sources(template: &str) -> Sources {
    sources_with(template, &[])
}

/// A template with additional files.
fn sources_with(template: &str, more: &[(&str, &str)]) -> Sources {
    let more = more.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    let template = kiln_template::source::parse(template, "t.yaml", usize::MAX).expect("YAML").value;
    let environment = value!({"resource_registry": {"AWS::EC2::Instance": "instance.yaml"}});
    Sources {
        template: Arc::new(template),
        environment: Arc::new(Environment::from_value(&environment).expect("an environment")),
        files: Arc::new(Files(more.chain([("instance.yaml".to_owned(), INSTANCE.to_owned())]).collect())),
    }
}
