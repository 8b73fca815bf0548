//! The types of OS::Heat that require no cloud, run as by the engine.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{
    Cloud, CloudRequest, CloudResponse, Context, Driver, Facts, Failure, NoSoftware, Operation, Progress,
    PropertyChange, ResourceType, Step, properties, shipped,
};
use kiln_value::{Class, Map, Value, value};

/// A cloud that must not be used.
struct NoCloud;

#[async_trait]
impl Cloud for NoCloud {
    async fn call(&self, request: CloudRequest) -> Result<CloudResponse, Failure> {
        panic!("unexpected request of {}", request.path)
    }

    async fn find(&self, finder: &str, name: &str) -> Result<String, Failure> {
        panic!("unexpected find of {finder} {name}")
    }

    async fn has_service(&self, _: &str) -> Result<bool, Failure> {
        Ok(false)
    }

    async fn has_extension(&self, _: &str, _: &str) -> Result<bool, Failure> {
        Ok(false)
    }

    async fn project_id(&self) -> Result<String, Failure> {
        Ok("project".to_owned())
    }
}

/// A seed whose random number is half of the maximum.
const HALF: [u8; 32] = {
    let mut seed = [0xff; 32];
    seed[7] = 0x7f;
    seed
};

/// A resource of a type and its driver, with a clock that the test controls.
struct Bench {
    resource_type: ResourceType,
    driver: Arc<dyn Driver>,
    facts: Facts,
    now: f64,
}

impl Bench {
    fn new(name: &str, given: &Value) -> Self {
        let resource_type = shipped::types().unwrap().into_iter().find(|t| t.name == name).unwrap();
        let driver = kiln_drivers::driver_for(&resource_type).unwrap();
        let facts = Facts {
            name: "r".to_owned(),
            resource_type: name.to_owned(),
            physical_name: "stack-r-abc".to_owned(),
            token: "7b1f2c58-35f0-4f0e-8a51-6a1c7d6f4f11".to_owned(),
            ..Facts::default()
        };
        let mut bench = Self { resource_type, driver, facts, now: 1_000_000.0 };
        bench.give(given);
        bench
    }

    fn give(&mut self, given: &Value) {
        let given = given.as_map().unwrap().clone();
        self.facts.properties = properties::resolve(&self.resource_type.properties, &given).unwrap();
        self.facts.given = given.into_keys().collect();
    }

    fn context(&self) -> Context<'_> {
        Context { cloud: &NoCloud, software: &NoSoftware, facts: &self.facts, now: self.now, seed: HALF, polls: 0 }
    }

    /// Starts an operation and polls until it ends; returns its duration.
    async fn run(&mut self, operation: Operation) -> Result<Duration, Failure> {
        let began = self.now;
        let mut step = self.driver.start(&self.context(), &operation).await?;
        loop {
            self.keep(&step);
            match step.progress {
                Progress::Done => return Ok(Duration::from_secs_f64(self.now - began)),
                Progress::Replace => return Err(Failure::other(Class::UpdateReplace, "")),
                Progress::Prepared => panic!("nothing is prepared"),
                Progress::Wait { state, after } => {
                    self.now += after.as_secs_f64();
                    step = self.driver.poll(&self.context(), &operation, &state).await?;
                }
            }
        }
    }

    fn keep(&mut self, step: &Step) {
        if let Some(id) = &step.physical_id {
            self.facts.physical_id = Some(id.clone());
        }
        self.facts.data.extend(step.data.clone());
    }

    async fn attribute(&self, name: &str) -> Value {
        self.driver.attributes(&self.context(), &[name]).await.unwrap().shift_remove(name).unwrap_or_default()
    }
}

fn update(changed: &Value) -> Operation {
    Operation::Update { before: Map::new(), changed: changed.as_map().unwrap().clone() }
}

#[tokio::test]
async fn a_test_resource_follows_its_properties() {
    let given = value!({"value": "v", "wait_secs": 5, "action_wait_secs": {"delete": 2.5}});
    let mut bench = Bench::new("OS::Heat::TestResource", &given);
    assert_eq!(bench.run(Operation::Create).await.unwrap(), Duration::from_secs(5));
    assert_eq!(bench.facts.physical_id.as_deref(), Some("stack-r-abc"));
    assert_eq!(bench.attribute("output").await, "v".into());
    assert_eq!(bench.run(update(&value!({"value": "w"}))).await.unwrap(), Duration::from_secs(5));
    assert_eq!(bench.attribute("output").await, "w".into());
    assert_eq!(bench.run(update(&value!({"wait_secs": 1}))).await.unwrap(), Duration::ZERO);
    assert_eq!(bench.run(Operation::Delete).await.unwrap(), Duration::from_millis(2500));

    let mut bench = Bench::new("OS::Heat::TestResource", &value!({"fail": true, "wait_secs": 3}));
    let failure = bench.run(Operation::Create).await.unwrap_err();
    assert_eq!(failure.to_string(), "ValueError: Test Resource failed r");
    assert_eq!((bench.now, bench.facts.physical_id.as_deref()), (1_000_003.0, None));
    let failure = bench.run(Operation::Check).await.unwrap_err();
    assert_eq!(failure.to_string(), "Exception: Resource not created");
    assert_eq!(bench.run(Operation::Delete).await.unwrap(), Duration::from_secs(3));
}

#[test]
fn a_test_resource_is_replaced_only_for_its_value() {
    let bench = Bench::new("OS::Heat::TestResource", &value!({}));
    let change = |name: &str| PropertyChange {
        before: Map::new(),
        after: Map::from([("update_replace".to_owned(), true.into())]),
        changed: vec![name.to_owned()],
    };
    assert!(bench.driver.needs_replace(&change("value")));
    assert!(!bench.driver.needs_replace(&change("wait_secs")));
}

#[tokio::test]
async fn a_value_is_checked_and_returned_unchanged() {
    let mut bench = Bench::new("OS::Heat::Value", &value!({"type": "number", "value": "5.5"}));
    bench.run(Operation::Create).await.unwrap();
    assert_eq!(bench.driver.reference(&bench.facts), "stack-r-abc".into());
    assert_eq!(bench.attribute("value").await, "5.5".into());
    bench.give(&value!({"type": "comma_delimited_list", "value": "a,b"}));
    let error = bench.driver.validate(&bench.facts).unwrap_err();
    assert_eq!(error.to_string(), "Property error: resources.r.properties.value: \"'a,b'\" is not a list");
    bench.give(&value!({"value": {"any": ["thing"]}}));
    assert_eq!(bench.attribute("value").await, value!({"any": ["thing"]}));
}

#[tokio::test]
async fn a_random_string_is_its_own_reference() {
    let given = value!({"length": 20, "character_classes": [{"class": "hexdigits", "min": 20}]});
    let mut bench = Bench::new("OS::Heat::RandomString", &given);
    assert_eq!(bench.driver.reference(&bench.facts), "r".into());
    bench.run(Operation::Create).await.unwrap();
    let text = bench.attribute("value").await;
    assert_eq!(bench.driver.reference(&bench.facts), text);
    let text = text.as_str().unwrap();
    assert!(text.len() == 20 && text.chars().all(|c| "0123456789ABCDEF".contains(c)), "{text}");
    bench.give(&value!({"length": 1, "character_sequences": [{"sequence": "x", "min": 1}]}));
    let error = bench.driver.validate(&bench.facts).unwrap_err();
    assert!(error.text.starts_with("Length property cannot be smaller than"), "{error}");
}

#[tokio::test]
async fn a_delay_waits_for_its_actions() {
    let given = value!({"min_wait": 10, "max_jitter": 2, "jitter_multiplier": 3, "actions": ["CREATE", "RESUME"]});
    let mut bench = Bench::new("OS::Heat::Delay", &given);
    let waited = bench.run(Operation::Create).await.unwrap();
    assert!((waited.as_secs_f64() - 13.0).abs() < 0.001, "half of the jitter: {waited:?}");
    assert_eq!(bench.run(Operation::Delete).await.unwrap(), Duration::ZERO);
    assert_eq!(bench.run(update(&value!({"min_wait": 1}))).await.unwrap_err().class, Class::UpdateReplace);
}

#[tokio::test]
async fn none_accepts_any_properties() {
    let mut bench = Bench::new("OS::Heat::None", &value!({"what": "ever"}));
    bench.run(Operation::Create).await.unwrap();
    assert!(bench.facts.physical_id.is_some());
    assert_eq!(bench.driver.attributes(&bench.context(), &["a"]).await.unwrap()["a"], Value::Null);
    assert!(bench.resource_type.open_properties && bench.resource_type.has_attribute("a"));
}
