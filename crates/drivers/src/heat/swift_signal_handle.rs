//! `OS::Heat::SwiftSignalHandle`: an object of Swift that receives signals at a temporary URL. Its old versions are the
//! earlier signals.

use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, Step};
use kiln_value::{Map, Value, value};

use crate::queue;
use crate::swift::{object, temp_url};

/// The content of the object before the first signal.
pub(super) const IN_PROGRESS: &str = "in progress";

/// The entry of the data with the URL.
const ENDPOINT: &str = "endpoint";

/// Steps of the create.
const CONTAINER: &str = "container";
const OBJECT: &str = "object";
const KEY: &str = "key";
const URL: &str = "url";

/// After this time, all keys that others have set at the same time are stored.
const OTHERS: Duration = Duration::from_secs(1);

/// Versions that one step of a delete removes.
const AT_ONCE: usize = 20;

/// The driver. The container has the ID of the stack and belongs to all handles of the stack.
pub(super) struct SwiftSignalHandle;

fn place(facts: &Facts) -> (&str, &str) {
    (&facts.stack.id, &facts.physical_name)
}

/// Deletes the versions of the object, the latest first, and then the container, unless another handle uses it.
async fn delete(cx: &Context<'_>) -> Result<Step, Failure> {
    let (container, name) = place(cx.facts);
    if cx.facts.physical_id.is_none() {
        return Ok(Step::done());
    }
    for _ in 0..AT_ONCE {
        if !object::delete(cx, container, name).await? {
            object::delete_empty_container(cx, container).await?;
            return Ok(Step::done().data(ENDPOINT, Value::Null));
        }
    }
    Ok(queue::now("versions"))
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
                Ok(queue::now(KEY))
            }
            Some(KEY) if temp_url::key(cx).await?.is_none() => {
                temp_url::set_key(cx).await?;
                Ok(Step::wait(value!({"stage": URL}), OTHERS))
            }
            _ => {
                let Some(key) = temp_url::key(cx).await? else { return Ok(queue::now(KEY)) };
                Ok(Step::done().data(ENDPOINT, temp_url::url(cx, "PUT", container, name, &key).await?))
            }
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

    /// The URL.
    fn reference(&self, facts: &Facts) -> Value {
        facts.data.get(ENDPOINT).cloned().unwrap_or_default()
    }
}
