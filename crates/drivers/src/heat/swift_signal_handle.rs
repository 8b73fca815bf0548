//! `OS::Heat::SwiftSignalHandle`: an object of Swift that receives signals at a temporary URL. Its old versions are the
//! earlier signals.

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, Step, TypeRules};
use kiln_value::{Class, Map, Value, value};

use crate::queue;
use crate::swift::{object, temp_url};

/// The content of the object before the first signal.
const IN_PROGRESS: &str = "in progress";

/// The entry of the data with the URL.
const ENDPOINT: &str = "endpoint";

/// Steps of the create.
const CONTAINER: &str = "container";
const OBJECT: &str = "object";
const URL: &str = "url";

/// The driver. The container has the ID of the stack and belongs to all handles of the stack.
pub(super) struct SwiftSignalHandle;

fn place(facts: &Facts) -> (&str, &str) {
    (&facts.stack.id, &facts.physical_name)
}

async fn delete(cx: &Context<'_>) -> Result<Step, Failure> {
    let (container, name) = place(cx.facts);
    if cx.facts.physical_id.is_none() {
        return Ok(Step::done());
    }
    if object::delete_with_container(cx, container, name).await? {
        return Ok(Step::done().data(ENDPOINT, Value::Null));
    }
    Ok(queue::now("versions"))
}

/// What a signal contains; `None` before the first one.
pub(super) fn details(body: &str) -> Result<Option<Map>, Failure> {
    match body {
        IN_PROGRESS => Ok(None),
        "" => Ok(Some(Map::new())),
        body => match serde_json::from_str(body) {
            Ok(Value::Map(signal)) => Ok(Some(signal)),
            Ok(_) => Err(Failure::other(Class::AttributeError, "A signal is a map")),
            Err(_) => Err(Failure::other(Class::Error, format!("Failed to parse JSON data: {body}"))),
        },
    }
}

impl TypeRules for SwiftSignalHandle {
    /// The URL.
    fn reference(&self, facts: &Facts) -> Value {
        facts.data.get(ENDPOINT).cloned().unwrap_or_default()
    }
}

#[async_trait]
impl Driver for SwiftSignalHandle {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            // The ID is stored before the first call.
            Operation::Create => Ok(queue::now(CONTAINER).id(cx.facts.physical_name.as_str())),
            Operation::Delete => delete(cx).await,
            _ => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, operation: &Operation, state: &Value) -> Result<Step, Failure> {
        if *operation == Operation::Delete {
            return delete(cx).await;
        }
        let (container, name) = place(cx.facts);
        match state.str_at("stage") {
            Some(CONTAINER) => {
                object::put_versioned_container(cx, container).await?;
                Ok(queue::now(OBJECT))
            }
            Some(OBJECT) => {
                // A repeated call must not make another version.
                if object::text(cx, container, name).await?.is_none() {
                    object::put(cx, container, name, IN_PROGRESS).await?;
                }
                Ok(queue::now(URL))
            }
            _ => match temp_url::ready(cx, "PUT", container, name).await? {
                Some(url) => Ok(Step::done().data(ENDPOINT, url)),
                None => Ok(Step::wait(value!({"stage": URL}), temp_url::OTHERS)),
            },
        }
    }

    /// No call is made before the ID is stored.
    async fn find(&self, _cx: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let url = cx.facts.physical_id.as_ref().and_then(|_| cx.facts.data.get(ENDPOINT)).and_then(Value::as_str);
        let value = |name: &str| match (name, url) {
            ("token", _) if cx.facts.physical_id.is_some() => "".into(),
            ("endpoint", Some(url)) => url.into(),
            ("curl_cli", Some(url)) => format!("curl -i -X PUT '{url}'").into(),
            _ => Value::Null,
        };
        Ok(names.iter().map(|name| ((*name).to_owned(), value(name))).collect())
    }
}
