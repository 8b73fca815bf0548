//! Metadata of drivers: an empty map if the template has none.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kiln_engine::{Engine, Options};
use kiln_plan::{ResourceTypes, Sources};
use kiln_resource::{
    Action, Context, Driver, Failure, Found, Operation, PropertySchema, Registry, ResourceType, StackId, Status, Step,
    TypeRules,
};
use kiln_stack::{Backends, Chance, Clock, NoCloud, SystemClock, load};
use kiln_store::{SqlStore, StackRequest, Store};
use kiln_template::Files;
use kiln_template::constraint::DataType;
use kiln_template::environment::Environment;
use kiln_value::{Map, Secret, Value, value};

/// Records the metadata of each operation.
#[derive(Clone, Default)]
struct Witness(Arc<Mutex<Vec<(Action, Value)>>>);

impl TypeRules for Witness {}

#[async_trait]
impl Driver for Witness {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        self.0.lock().expect("whole").push((operation.action(), cx.facts.metadata.clone()));
        Ok(Step::done())
    }

    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    async fn attributes(&self, _: &Context<'_>, _: &[&str]) -> Result<Map, Failure> {
        Ok(Map::new())
    }
}

fn backends(store: SqlStore, witness: &Witness) -> Backends {
    let mut resource_type = ResourceType::new("Test::Witness");
    let word = PropertySchema { update_allowed: true, ..PropertySchema::new(DataType::String) };
    resource_type.properties.insert("word".to_owned(), word);
    Backends {
        store: Arc::new(store),
        resource_types: Arc::new(ResourceTypes::new(Registry::build([resource_type], |_| {
            Some(Arc::new(witness.clone()))
        }))),
        clouds: Arc::new(NoCloud),
        clock: Arc::new(SystemClock),
        chance: Arc::new(Chance::seeded(1)),
        caches: Arc::default(),
    }
}

/// A template of one resource with metadata or without.
fn sources(word: &str, metadata: Option<&Value>) -> Sources {
    let mut one = value!({"type": "Test::Witness", "properties": {"word": word}});
    if let (Some(one), Some(metadata)) = (one.as_map_mut(), metadata) {
        one.insert("metadata".to_owned(), metadata.clone());
    }
    Sources {
        template: Arc::new(value!({"heat_template_version": "2018-08-31", "resources": {"one": one}})),
        environment: Arc::new(Environment::default()),
        files: Arc::new(Files::default()),
    }
}

async fn completed(store: &dyn Store, id: StackId) {
    let stack = crate::stack::settled(store, id, Duration::from_secs(30)).await;
    assert_eq!(stack.state.status, Status::Complete, "{}", stack.reason);
}

#[tokio::test]
async fn a_driver_is_told_an_empty_map_of_no_metadata() {
    let key = Secret::new("0123456789abcdef0123456789abcdef".to_owned());
    let store = SqlStore::open(kiln_store::Options::new("sqlite::memory:", key)).await.expect("a database");
    store.migrate().await.expect("a schema");
    let witness = Witness::default();
    let backends = backends(store, &witness);
    let options = Options { poll: Duration::from_millis(20), ..Options::default() };
    let engine = Engine::new(options, backends.clone());
    let (end, stop) = tokio::sync::watch::channel(false);
    let running = tokio::spawn(async move { engine.run(stop).await });

    let id = crate::stack::create(&backends, "one", &sources("first", None)).await;
    completed(&*backends.store, id).await;
    let given = value!({"a": 1});
    for (word, metadata) in [("second", None), ("third", Some(&given)), ("fourth", None)] {
        let desired = Some(load::texts(&sources(word, metadata)));
        let request = StackRequest { desired, ..StackRequest::new(Action::Update, SystemClock.now()) };
        backends.store.request(id, request).await.expect("asked");
        completed(&*backends.store, id).await;
    }
    end.send_replace(true);
    running.await.expect("no panic").expect("stopped");

    let seen = witness.0.lock().expect("whole").clone();
    let empty = || value!({});
    let expected =
        [(Action::Create, empty()), (Action::Update, empty()), (Action::Update, given), (Action::Update, empty())];
    assert_eq!(seen, expected);
}
