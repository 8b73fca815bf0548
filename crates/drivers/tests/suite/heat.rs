//! The types of OS::Heat that require no cloud, run as by the engine.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{Cloud, CloudRequest, CloudResponse, Failure, Operation, PropertyChange};
use kiln_value::{Map, Value, value};

use crate::resource::{Ending, Resource};

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

/// A resource that needs no cloud.
async fn offline(type_name: &str, given: Value) -> Resource {
    let mut resource = Resource::new(Arc::new(NoCloud), "heat", type_name, "r");
    "stack-r-abc".clone_into(&mut resource.facts.physical_name);
    resource.seed = HALF;
    resource.give(given).await.unwrap();
    resource
}

/// The duration of an operation.
async fn time(resource: &mut Resource, operation: Operation) -> Result<Duration, Failure> {
    let began = resource.now;
    resource.act(operation).await?;
    Ok(Duration::from_secs_f64(resource.now - began))
}

fn update(changed: &Value) -> Operation {
    Operation::Update { before: Map::new(), changed: changed.as_map().unwrap().clone() }
}

#[tokio::test(start_paused = true)]
async fn a_test_resource_follows_its_properties() {
    let given = value!({"value": "v", "wait_secs": 5, "action_wait_secs": {"delete": 2.5}});
    let mut resource = offline("OS::Heat::TestResource", given).await;
    assert_eq!(time(&mut resource, Operation::Create).await.unwrap(), Duration::from_secs(5));
    assert_eq!(resource.facts.physical_id.as_deref(), Some("stack-r-abc"));
    assert_eq!(resource.attribute("output").await, "v".into());
    assert_eq!(time(&mut resource, update(&value!({"value": "w"}))).await.unwrap(), Duration::from_secs(5));
    assert_eq!(resource.attribute("output").await, "w".into());
    assert_eq!(time(&mut resource, update(&value!({"wait_secs": 1}))).await.unwrap(), Duration::ZERO);
    assert_eq!(time(&mut resource, Operation::Delete).await.unwrap(), Duration::from_millis(2500));

    let mut resource = offline("OS::Heat::TestResource", value!({"fail": true, "wait_secs": 3})).await;
    let failure = resource.act(Operation::Create).await.unwrap_err();
    assert_eq!(failure.to_string(), "ValueError: Test Resource failed r");
    assert_eq!((resource.now, resource.facts.physical_id.as_deref()), (3.0, None));
    let failure = resource.act(Operation::Check).await.unwrap_err();
    assert_eq!(failure.to_string(), "Exception: Resource not created");
    assert_eq!(time(&mut resource, Operation::Delete).await.unwrap(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_test_resource_is_replaced_only_for_its_value() {
    let resource = offline("OS::Heat::TestResource", value!({})).await;
    let change = |name: &str| PropertyChange {
        before: Map::new(),
        after: Map::from([("update_replace".to_owned(), true.into())]),
        changed: vec![name.to_owned()],
    };
    assert!(resource.driver().needs_replace(&change("value")));
    assert!(!resource.driver().needs_replace(&change("wait_secs")));
}

#[tokio::test(start_paused = true)]
async fn a_value_is_checked_and_returned_unchanged() {
    let mut resource = offline("OS::Heat::Value", value!({"type": "number", "value": "5.5"})).await;
    resource.act(Operation::Create).await.unwrap();
    assert_eq!(resource.reference(), "stack-r-abc".into());
    assert_eq!(resource.attribute("value").await, "5.5".into());
    resource.give(value!({"type": "comma_delimited_list", "value": "a,b"})).await.unwrap();
    let error = resource.validate().unwrap_err();
    assert_eq!(error.to_string(), "Property error: resources.r.properties.value: \"'a,b'\" is not a list");
    resource.give(value!({"value": {"any": ["thing"]}})).await.unwrap();
    assert_eq!(resource.attribute("value").await, value!({"any": ["thing"]}));
}

#[tokio::test(start_paused = true)]
async fn a_random_string_is_its_own_reference() {
    let given = value!({"length": 20, "character_classes": [{"class": "hexdigits", "min": 20}]});
    let mut resource = offline("OS::Heat::RandomString", given).await;
    assert_eq!(resource.reference(), "r".into());
    resource.act(Operation::Create).await.unwrap();
    let text = resource.attribute("value").await;
    assert_eq!(resource.reference(), text);
    let text = text.as_str().unwrap();
    assert!(text.len() == 20 && text.chars().all(|c| "0123456789ABCDEF".contains(c)), "{text}");
    resource.give(value!({"length": 1, "character_sequences": [{"sequence": "x", "min": 1}]})).await.unwrap();
    let error = resource.validate().unwrap_err();
    assert!(error.text.starts_with("Length property cannot be smaller than"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_delay_waits_for_its_actions() {
    let given = value!({"min_wait": 10, "max_jitter": 2, "jitter_multiplier": 3, "actions": ["CREATE", "RESUME"]});
    let mut resource = offline("OS::Heat::Delay", given).await;
    let waited = time(&mut resource, Operation::Create).await.unwrap();
    assert!((waited.as_secs_f64() - 13.0).abs() < 0.001, "half of the jitter: {waited:?}");
    assert_eq!(time(&mut resource, Operation::Delete).await.unwrap(), Duration::ZERO);
    assert_eq!(resource.carry(&update(&value!({"min_wait": 1}))).await.unwrap(), Ending::Replace);
}

#[tokio::test(start_paused = true)]
async fn none_accepts_any_properties() {
    let mut resource = offline("OS::Heat::None", value!({"what": "ever"})).await;
    resource.act(Operation::Create).await.unwrap();
    assert!(resource.facts.physical_id.is_some());
    assert_eq!(resource.attribute("a").await, Value::Null);
    assert!(resource.kind.open_properties && resource.kind.has_attribute("a"));
}
