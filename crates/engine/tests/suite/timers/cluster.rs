//! Engines with a store in memory, paused time, and a resource type with a scripted driver.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_engine::{Engine, Options};
use kiln_plan::{ResourceTypes, Sources};
use kiln_resource::{
    Action, Cloud, CloudRequest, CloudResponse, Context, Driver, Facts, Failure, Found, Method, Nested, NestedStack,
    Operation, PropertySchema, Received, Registry, Resource, ResourceType, StackId, Step, TypeRules,
};
use kiln_stack::{Backends, Chance, Clock, load};
use kiln_store::{Event, EventQuery, MemoryStore, NewStack, Stack, StackRequest};
use kiln_template::Files;
use kiln_template::constraint::DataType;
use kiln_template::environment::Environment;
use kiln_value::{Diagnostic, Map, Value, value};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Paused time since the start of the test.
#[derive(Clone, Copy)]
pub(crate) struct PausedClock(pub(crate) Instant);

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

/// A call of the driver.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Call {
    Start(Action),
    Poll(Action),
    Find,
    Receive(Value),
}

/// The results of the driver's calls, scripted by the test.
type Script = dyn Fn(usize, &Call, &Facts) -> Result<Answer, Failure> + Send + Sync;

/// A result of the driver.
pub(crate) enum Answer {
    Step(Step),
    /// The call goes through the cloud and takes some time.
    After(Duration, Step),
    Found(Found),
}

/// A driver that records its calls and follows a script.
pub(crate) struct Scripted {
    start: Instant,
    calls: Mutex<Vec<(Duration, Call)>>,
    script: Box<Script>,
}

impl Scripted {
    fn calls(&self) -> MutexGuard<'_, Vec<(Duration, Call)>> {
        self.calls.lock().expect("whole")
    }

    /// The calls so far, with their times in seconds.
    pub(crate) fn seen(&self) -> Vec<(f64, Call)> {
        self.calls().iter().map(|(at, call)| (at.as_secs_f64(), call.clone())).collect()
    }

    /// Number of such calls.
    pub(crate) fn count(&self, wanted: &Call) -> usize {
        self.calls().iter().filter(|(_, call)| call == wanted).count()
    }

    async fn answer(&self, cx: &Context<'_>, call: Call) -> Result<Answer, Failure> {
        // Calls of the driver are calls of the cloud: they pass the fence.
        cx.cloud.call(CloudRequest::new("test", Method::Get, "/")).await?;
        let number = {
            let mut calls = self.calls();
            calls.push((self.start.elapsed(), call.clone()));
            calls.len() - 1
        };
        let answer = (self.script)(number, &call, cx.facts)?;
        if let Answer::After(time, _) = &answer {
            tokio::time::sleep(*time).await;
        }
        Ok(answer)
    }
}

fn step_of(answer: Answer) -> Step {
    match answer {
        Answer::Step(step) | Answer::After(_, step) => step,
        Answer::Found(found) => panic!("{found:?} where a step is asked for"),
    }
}

pub(crate) struct Handle(pub(crate) Arc<Scripted>);

impl TypeRules for Handle {}

#[async_trait]
impl Driver for Handle {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        self.0.answer(cx, Call::Start(operation.action())).await.map(step_of)
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, _: &Value) -> Result<Step, Failure> {
        self.0.answer(cx, Call::Poll(operation.action())).await.map(step_of)
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        match self.0.answer(cx, Call::Find).await? {
            Answer::Found(found) => Ok(found),
            Answer::Step(_) | Answer::After(..) => panic!("a step where something found is asked for"),
        }
    }

    async fn receive(&self, cx: &Context<'_>, message: &Value) -> Result<Received, Failure> {
        let step = self.0.answer(cx, Call::Receive(message.clone())).await.map(step_of)?;
        Ok(Received { physical_id: step.physical_id, data: step.data, ..Received::default() })
    }

    async fn attributes(&self, _: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        Ok(names.iter().map(|name| ((*name).to_owned(), "read".into())).collect())
    }
}

/// The words of a group whose driver panics: in a task of the actor, before there is a nested stack, and in the actor.
pub(crate) const PANICS_FIRST: &str = "panics first";
pub(crate) const PANICS_LATER: &str = "panics later";

/// A group that updates its member to `word` in three steps, with delays of a minute.
struct InSteps;

impl TypeRules for InSteps {}

#[async_trait]
impl NestedStack for InSteps {
    fn prepares(&self, facts: &Facts) -> Option<&'static str> {
        (facts.property("word").as_str() == Some(PANICS_FIRST)).then_some("word")
    }

    async fn prepare(&self, _: &Context<'_>) -> Result<Map, Failure> {
        panic!("on purpose: a task of the actor");
    }

    fn nested(&self, facts: &Facts, _: &[Vec<Value>]) -> Option<Result<Nested, Diagnostic>> {
        let number = facts.nested.step.as_i64().unwrap_or(0);
        assert!(number == 0 || facts.property("word").as_str() != Some(PANICS_LATER), "on purpose: the actor");
        let word = format!("{}{number}", facts.property("word").as_str().unwrap_or_default());
        Some(Ok(Nested {
            template: value!({"heat_template_version": "2018-08-31",
                "resources": {"member": {"type": "Test::Thing", "properties": {"word": word}}}}),
            then: (number < 2).then(|| Value::Int(number + 1)),
            pause: Duration::from_mins(1),
            ..Nested::default()
        }))
    }
}

/// A cloud that responds immediately.
struct Sky;

#[async_trait]
impl Cloud for Sky {
    async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
        assert!(request.gate.is_some_and(|gate| gate.is_open()), "a call past the fence");
        Ok(CloudResponse::default())
    }

    async fn find(&self, _: &str, name: &str) -> Result<String, Failure> {
        Ok(name.to_owned())
    }

    async fn has_service(&self, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn has_extension(&self, _: &str, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn project_id(&self) -> Result<String, Failure> {
        Ok("demo".to_owned())
    }
}

#[async_trait]
impl kiln_stack::Clouds for Sky {
    async fn cloud(&self, _: &Stack) -> Result<Arc<dyn Cloud>, Failure> {
        Ok(Arc::new(Sky))
    }
}

/// A running engine.
pub(crate) struct Running {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Running {
    /// Like kill -9.
    pub(crate) fn kill(self) {
        self.task.abort();
    }

    /// Like SIGTERM: returns the duration of the stop.
    pub(crate) async fn stop(self) -> Duration {
        let start = Instant::now();
        self.stop.send_replace(true);
        self.task.await.expect("no panic");
        start.elapsed()
    }
}

/// Store, driver and time of a test.
pub(crate) struct Cluster {
    pub(crate) backends: Backends,
    pub(crate) driver: Arc<Scripted>,
    pub(crate) start: Instant,
}

impl Cluster {
    pub(crate) fn new(
        script: impl Fn(usize, &Call, &Facts) -> Result<Answer, Failure> + Send + Sync + 'static,
    ) -> Self {
        let start = Instant::now();
        let clock = PausedClock(start);
        let driver = Arc::new(Scripted { start, calls: Mutex::default(), script: Box::new(script) });
        let mut thing = ResourceType::new("Test::Thing");
        let word = || PropertySchema { update_allowed: true, ..PropertySchema::new(DataType::String) };
        thing.properties.insert("word".to_owned(), word());
        let mut group = ResourceType::new("Test::InSteps");
        group.nested = true;
        group.properties.insert("word".to_owned(), word());
        let of = Arc::clone(&driver);
        let registry = Registry::build([thing, group], move |resource_type| match resource_type.name.as_str() {
            "Test::InSteps" => Some(Arc::new(InSteps) as Arc<dyn Driver>),
            _ => Some(Arc::new(Handle(Arc::clone(&of))) as Arc<dyn Driver>),
        });
        let backends = Backends {
            store: Arc::new(MemoryStore::new(Arc::new(move || clock.now()))),
            resource_types: Arc::new(ResourceTypes::new(registry)),
            clouds: Arc::new(Sky),
            clock: Arc::new(clock),
            chance: Arc::new(Chance::seeded(7)),
            caches: Arc::default(),
        };
        Self { backends, driver, start }
    }

    /// A database whose clock is ahead by the returned number of seconds.
    pub(crate) fn database_that_jumps(&mut self) -> Arc<AtomicU64> {
        let ahead = Arc::new(AtomicU64::new(0));
        let (clock, jump) = (Arc::clone(&self.backends.clock), Arc::clone(&ahead));
        let now = move || clock.now() + Duration::from_secs(jump.load(Ordering::SeqCst));
        self.backends.store = Arc::new(MemoryStore::new(Arc::new(now)));
        ahead
    }

    pub(crate) fn engine(&self) -> Running {
        self.engine_of(|engine| engine)
    }

    /// An engine with more parts.
    pub(crate) fn engine_of(&self, with: impl FnOnce(Engine) -> Engine) -> Running {
        Self::run(with(Engine::new(Options::default(), self.backends.clone())))
    }

    /// An engine whose heartbeat runs on another runtime.
    pub(crate) fn engine_with_heartbeat_on(&self, runtime: tokio::runtime::Handle) -> Running {
        self.engine_of(|engine| engine.with_heartbeat_on(runtime, Arc::clone(&self.backends.store)))
    }

    fn run(engine: Engine) -> Running {
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(async move { engine.run(stopped).await.expect("the engine runs") });
        Running { stop, task }
    }

    /// Requests a stack with one resource.
    pub(crate) async fn create(&self, timeout_mins: Option<i64>) -> StackId {
        self.create_of("Test::Thing", timeout_mins).await
    }

    pub(crate) async fn create_of(&self, resource_type: &str, timeout_mins: Option<i64>) -> StackId {
        self.create_stack(&sources(resource_type, "first"), timeout_mins).await
    }

    /// Requests a stack with a group that takes three steps.
    pub(crate) async fn create_group(&self, word: &str) -> StackId {
        self.create_stack(&sources("Test::InSteps", word), None).await
    }

    /// Requests a stack with any template.
    pub(crate) async fn create_from(&self, sources: &Sources) -> StackId {
        self.create_stack(sources, None).await
    }

    /// Requests a stack with a time limit.
    pub(crate) async fn create_limited(&self, sources: &Sources, timeout_mins: i64) -> StackId {
        self.create_stack(sources, Some(timeout_mins)).await
    }

    /// Requests a stack with one resource and this name.
    pub(crate) async fn create_named(&self, name: &str) -> StackId {
        self.create_stack_named(name, &sources("Test::Thing", "first"), None).await
    }

    async fn create_stack(&self, sources: &Sources, timeout_mins: Option<i64>) -> StackId {
        self.create_stack_named("s", sources, timeout_mins).await
    }

    async fn create_stack_named(&self, name: &str, sources: &Sources, timeout_mins: Option<i64>) -> StackId {
        let id = StackId(self.backends.chance.uuid());
        let stack = NewStack {
            timeout_mins,
            username: "demo".to_owned(),
            user_id: "demo".to_owned(),
            ..NewStack::new(id, name.to_owned(), "demo".to_owned(), load::texts(sources), self.backends.clock.now())
        };
        self.backends.store.create_stack(stack).await.expect("stored");
        id
    }

    pub(crate) async fn ask(&self, id: StackId, action: Action) {
        let request = StackRequest::new(action, self.backends.clock.now());
        self.backends.store.request(id, request).await.expect("stored");
    }

    /// Requests an update to a template with one resource.
    pub(crate) async fn update_to(&self, id: StackId, resource_type: &str, word: &str) {
        let mut request = StackRequest::new(Action::Update, self.backends.clock.now());
        request.desired = Some(load::texts(&sources(resource_type, word)));
        self.backends.store.request(id, request).await.expect("stored");
    }

    /// The settled stack, and its time in seconds since the start.
    pub(crate) async fn settled(&self, id: StackId) -> (Stack, f64) {
        loop {
            let stack = self.backends.store.stack(id).await.expect("read").expect("there");
            if !stack.is_pending() {
                return (stack, self.start.elapsed().as_secs_f64());
            }
            assert!(self.start.elapsed() < Duration::from_hours(5), "stuck: {stack:?}, {:?}", self.driver.seen());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The events of a stack.
    pub(crate) async fn events(&self, id: StackId) -> Vec<Event> {
        self.backends.store.events(&EventQuery { stacks: vec![id], ..EventQuery::default() }).await.expect("read")
    }

    /// The rows of a stack.
    pub(crate) async fn rows(&self, id: StackId) -> Vec<Resource> {
        self.backends.store.resources(id).await.expect("read")
    }
}

/// A nested template: `b` depends on `a`.
const INNER: &str = "heat_template_version: 2018-08-31
parameters: {word: {type: string}}
resources:
  a: {type: Test::Thing, properties: {word: {get_param: word}}}
  b: {type: Test::Thing, depends_on: a, properties: {word: {get_param: word}}}
";

/// A template with one resource; the type `inner.yaml` is a nested template.
pub(crate) fn sources(resource_type: &str, word: &str) -> Sources {
    let one = value!({"type": resource_type, "properties": {"word": word}});
    Sources {
        template: Arc::new(value!({"heat_template_version": "2018-08-31", "resources": {"one": one}})),
        environment: Arc::new(Environment::default()),
        files: Arc::new(Files([("inner.yaml".to_owned(), INNER.to_owned())].into())),
    }
}

/// Polls again after some seconds, in the same state.
#[expect(clippy::unnecessary_wraps, reason = "scripts answer so")]
pub(crate) fn waiting(seconds: u64) -> Result<Answer, Failure> {
    Ok(Answer::Step(Step::wait("building", Duration::from_secs(seconds))))
}

/// Done immediately.
#[expect(clippy::unnecessary_wraps, reason = "scripts answer so")]
pub(crate) fn done() -> Result<Answer, Failure> {
    Ok(Answer::Step(Step::done().id("object")))
}
