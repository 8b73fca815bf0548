//! An engine on a database in memory, and a resource type whose driver records its calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kiln_engine::{Engine, Options};
use kiln_plan::{ResourceTypes, Sources};
use kiln_resource::{
    Action, AttributeSchema, Context, Driver, Failure, Found, Operation, PropertySchema, Received, Registry,
    ResourceType, SnapshotId, StackId, State, Status, Step, TypeRules,
};
use kiln_stack::{Backends, Chance, Clock as _, NoCloud, SystemClock, load};
use kiln_store::{
    EventQuery, NewStack, Options as StoreOptions, Resource, Snapshot, SqlStore, Stack, StackRequest, Store,
};
use kiln_template::Files;
use kiln_template::constraint::DataType;
use kiln_template::environment::Environment;
use kiln_value::{Class, Map, Secret, Value, value};
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Records its calls; its objects have the IDs `thing-1`, `thing-2` … in the order of their creation.
#[derive(Clone, Default)]
struct Thing(Arc<Mutex<Calls>>);

#[derive(Default)]
struct Calls {
    made: usize,
    /// Copies cannot be deleted.
    locked: bool,
    /// Operation and ID of the object.
    log: Vec<String>,
}

impl TypeRules for Thing {}

#[async_trait]
impl Driver for Thing {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        let mut calls = self.0.lock().expect("whole");
        if cx.facts.property("word").as_str() == Some("fail") && *operation == Operation::Create {
            return Err(Failure::other(Class::Error, "as requested"));
        }
        if *operation == Operation::Create {
            calls.made += 1;
            let id = format!("thing-{}", calls.made);
            calls.log.push(format!("CREATE {id}"));
            if cx.facts.property("word").as_str() == Some("half") && calls.made == 1 {
                return Ok(Step::wait("half", Duration::from_millis(5)).id(id));
            }
            return Ok(Step::done().id(id).data("secret", "s"));
        }
        let id = cx.facts.physical_id.clone().unwrap_or_default();
        if *operation == Operation::Snapshot {
            let copy = format!("copy of {id}");
            calls.log.push(format!("SNAPSHOT {id}"));
            let step = Step::wait("copying", Duration::from_millis(5));
            return Ok(if cx.facts.property("word").as_str() == Some("quick") {
                Step::done().data("copy", copy)
            } else {
                step
            });
        }
        if *operation == Operation::Delete {
            match cx.facts.property("word").as_str() {
                Some("stuck") => return Err(Failure::other(Class::Error, "the object is in use")),
                Some("hang") => return Ok(Step::wait("deleting", Duration::from_millis(5))),
                _ => {}
            }
        }
        calls.log.push(format!("{} {id}", operation.action()));
        Ok(Step::done())
    }

    async fn poll(&self, cx: &Context<'_>, _: &Operation, state: &Value) -> Result<Step, Failure> {
        if state.as_str() == Some("half") {
            return Err(Failure::other(Class::Error, "the object exists, but is not complete"));
        }
        if matches!(cx.facts.property("word").as_str(), Some("slow" | "hang")) {
            return Ok(Step::wait(state.clone(), Duration::from_millis(5)));
        }
        Ok(Step::done().data("copy", format!("copy of {}", cx.facts.physical_id.as_deref().unwrap_or_default())))
    }

    fn snapshots(&self) -> bool {
        true
    }

    async fn delete_snapshot(&self, cx: &Context<'_>) -> Result<Option<Duration>, Failure> {
        let mut calls = self.0.lock().expect("whole");
        assert!(cx.now > 0.0 && cx.seed != [0; 32], "the time and the seed of a call");
        let Some(copy) = cx.facts.data.get("copy").and_then(Value::as_str) else { return Ok(None) };
        if calls.locked {
            return Err(Failure::other(Class::Conflict, "the copy is locked"));
        }
        let line = format!("REMOVE {copy}");
        if calls.log.contains(&line) {
            return Ok(None);
        }
        calls.log.push(line);
        Ok(Some(Duration::from_millis(5)))
    }

    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    /// A signal is the new secret.
    async fn receive(&self, _: &Context<'_>, message: &Value) -> Result<Received, Failure> {
        Ok(Received::default().data("secret", message.clone()).result("a secret"))
    }

    fn needs_cloud(&self) -> bool {
        false
    }

    /// Its calls are those of a cloud.
    fn is_repeatable(&self) -> bool {
        false
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let secret = cx.facts.data.get("secret").cloned().unwrap_or_default();
        let is_whole = cx.facts.property("word").as_str() == Some("whole");
        let value = |name: &str| if is_whole && name == "show" { value!({"all": 1}) } else { secret.clone() };
        Ok(names.iter().map(|name| ((*name).to_owned(), value(name))).collect())
    }
}

async fn open(url: &str) -> SqlStore {
    let key = Secret::new("0123456789abcdef0123456789abcdef".to_owned());
    SqlStore::open(StoreOptions::new(url, key)).await.expect("a database")
}

/// An engine with its store.
pub(crate) struct Bench {
    pub(crate) backends: Backends,
    thing: Thing,
    engine: Option<(watch::Sender<bool>, tokio::task::JoinHandle<()>)>,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Box::pin(Self::on("sqlite::memory:")).await
    }

    /// An engine on a database.
    pub(crate) async fn on(url: &str) -> Self {
        let store = open(url).await;
        store.migrate().await.expect("a schema");
        let thing = Thing::default();
        let mut thing_type = ResourceType::new("Test::Thing");
        let word = PropertySchema { update_allowed: true, ..PropertySchema::new(DataType::String) };
        thing_type.properties.insert("word".to_owned(), word);
        thing_type.attributes.insert("secret".to_owned(), AttributeSchema::default());
        let mut types: Vec<ResourceType> =
            kiln_resource::shipped::types().expect("sound definitions").into_iter().collect();
        types.push(thing_type);
        let driver = thing.clone();
        let registry = Registry::build(types, |found| {
            let own: Option<Arc<dyn Driver>> = (found.name == "Test::Thing").then(|| Arc::new(driver.clone()) as _);
            own.or_else(|| kiln_drivers::driver_for(found))
        });
        let backends = Backends {
            store: Arc::new(store),
            resource_types: Arc::new(ResourceTypes::new(registry)),
            clouds: Arc::new(NoCloud),
            clock: Arc::new(SystemClock),
            chance: Arc::new(Chance::seeded(1)),
            caches: Arc::default(),
        };
        let mut bench = Self { backends, thing, engine: None };
        bench.start();
        bench
    }

    /// What another process without an engine has: its own connections to the database and its own caches.
    pub(crate) async fn other_process(&self, url: &str) -> Backends {
        Backends { store: Arc::new(open(url).await), caches: Arc::default(), ..self.backends.clone() }
    }

    /// Starts an engine whose leases expire soon after it fails.
    pub(crate) fn start(&mut self) {
        let lease = Duration::from_millis(300);
        let options = Options { lease, poll: Duration::from_millis(50), call_limit: lease, ..Options::default() };
        let engine = Engine::new(options, self.backends.clone());
        let (stop, stopped) = watch::channel(false);
        self.engine = Some((stop, tokio::spawn(async move { engine.run(stopped).await.expect("the engine runs") })));
    }

    /// Like kill -9.
    pub(crate) fn kill(&mut self) {
        if let Some((_, engine)) = self.engine.take() {
            engine.abort();
        }
    }

    /// The calls of the driver so far, sorted.
    pub(crate) fn calls(&self) -> Vec<String> {
        let mut log = self.thing.0.lock().expect("whole").log.clone();
        log.sort();
        log
    }

    /// Whether copies cannot be deleted.
    pub(crate) fn lock_copies(&self, locked: bool) {
        self.thing.0.lock().expect("whole").locked = locked;
    }

    /// Forgets the calls so far.
    pub(crate) fn forget_calls(&self) {
        self.thing.0.lock().expect("whole").log.clear();
    }

    /// Stores a new stack.
    pub(crate) async fn begin(
        &self,
        action: Action,
        sources: &Sources,
        adopt: Option<Value>,
        rollback: bool,
    ) -> StackId {
        let id = StackId(self.backends.chance.uuid());
        let adopt = adopt.map(|data| Snapshot {
            id: SnapshotId(self.backends.chance.uuid()),
            stack: id,
            name: None,
            state: State::new(Action::Adopt, Status::InProgress),
            reason: String::new(),
            data,
            created: SystemClock.now(),
        });
        let new = NewStack {
            action,
            disable_rollback: !rollback,
            username: "demo".to_owned(),
            user_id: "demo".to_owned(),
            adopt,
            ..NewStack::new(id, format!("s-{id}"), "demo".to_owned(), load::texts(sources), SystemClock.now())
        };
        self.backends.store.create_stack(new).await.expect("stored");
        id
    }

    /// Creates a stack.
    pub(crate) async fn create(&self, sources: &Sources) -> Stack {
        let id = self.begin(Action::Create, sources, None, false).await;
        self.completed(id).await
    }

    /// Writes a request and waits for its end.
    pub(crate) async fn request(&self, id: StackId, request: StackRequest) -> Stack {
        self.backends.store.request(id, request).await.expect("stored");
        self.settled(id).await
    }

    pub(crate) async fn settled(&self, id: StackId) -> Stack {
        let start = Instant::now();
        loop {
            let stack = self.backends.store.stack(id).await.expect("read").expect("there");
            if !stack.is_pending() {
                return stack;
            }
            assert!(start.elapsed() < PATIENCE, "stuck: {stack:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn completed(&self, id: StackId) -> Stack {
        let stack = self.settled(id).await;
        assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
        stack
    }

    /// The resources of a stack, by name.
    pub(crate) async fn resources(&self, id: StackId) -> BTreeMap<String, Resource> {
        let rows = self.backends.store.resources(id).await.expect("read");
        rows.into_iter().map(|row| (row.name.clone(), row)).collect()
    }

    /// The events: resource, state and reason.
    pub(crate) async fn events(&self, id: StackId) -> Vec<String> {
        let query = EventQuery { stacks: vec![id], ..EventQuery::default() };
        let events = self.backends.store.events(&query).await.expect("read");
        let shown = |event: &kiln_store::Event| {
            let name = if event.is_of_stack() { "<stack>" } else { event.resource_name.as_str() };
            format!("{name} {}_{} {}", event.action, event.status, event.reason)
        };
        events.iter().map(shown).collect()
    }

    /// The nested stack of a resource.
    pub(crate) async fn child(&self, id: StackId, name: &str) -> Stack {
        let child = self.resources(id).await.remove(name).and_then(|row| row.child).expect("a nested stack");
        self.backends.store.stack(child).await.expect("read").expect("there")
    }
}

/// A request.
pub(crate) fn asked(action: Action) -> StackRequest {
    StackRequest::new(action, SystemClock.now())
}

/// Sources with an environment and files.
pub(crate) fn sources(resources: Value, environment: &Value, files: &[(&str, Value)]) -> Sources {
    let mut sections = environment.as_map().cloned().unwrap_or_default();
    kiln_template::environment::fill(&mut sections);
    Sources {
        template: Arc::new(value!({"heat_template_version": "2018-08-31", "resources": resources})),
        environment: Arc::new(Environment::from_sections(&sections).expect("valid")),
        files: Arc::new(Files(
            files.iter().map(|(name, value)| ((*name).to_owned(), kiln_value::text::json(value))).collect(),
        )),
    }
}
