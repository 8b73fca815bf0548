//! OS::Zaqar::Queue

use async_trait::async_trait;
use kiln_resource::{CloudRequest, Context, Driver, Facts, Failure, Found, Method, Operation, Step, TypeRules};
use kiln_value::{Map, Value, value};

use crate::call::ZAQAR;
use crate::{path, queue};

/// A queue. Its ID is its name; a queue with this name is the same queue.
pub(super) struct Queue;

fn path_of(name: &str) -> String {
    format!("/v2/queues/{}", path::segment(name))
}

fn metadata(facts: &Facts) -> Map {
    facts.property("metadata").as_map().cloned().unwrap_or_default()
}

/// The changes of the metadata as a JSON patch.
fn patch(before: &Map, after: &Map) -> Vec<Value> {
    let entry = |op: &str, key: &String| (op.to_owned(), format!("/metadata/{key}"));
    let mut patch: Vec<Value> = Vec::new();
    for (key, value) in after.iter().filter(|(key, value)| before.get(*key) != Some(value)) {
        let (op, at) = entry(if before.contains_key(key) { "replace" } else { "add" }, key);
        patch.push(value!({"op": op, "path": at, "value": (value.clone())}));
    }
    for key in before.keys().filter(|key| !key.starts_with('_') && !after.contains_key(*key)) {
        let (op, at) = entry("remove", key);
        patch.push(value!({"op": op, "path": at}));
    }
    patch
}

impl TypeRules for Queue {}

#[async_trait]
impl Driver for Queue {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            // The ID is stored before the first call, which is idempotent.
            Operation::Create => {
                let name = cx.facts.property("name").as_str().unwrap_or(&cx.facts.physical_name);
                Ok(queue::now("put").id(name))
            }
            Operation::Update { .. } => {
                let path = path_of(cx.facts.require_id()?);
                let current = ZAQAR.get(cx, path.clone()).await?;
                let changes = patch(current.as_map().unwrap_or(&Map::new()), &metadata(cx.facts));
                if !changes.is_empty() {
                    let mut request = CloudRequest::new(ZAQAR.0, Method::Patch, path).body(Value::List(changes));
                    let kind = "application/openstack-messaging-v2.0-json-patch";
                    request.headers.push(("content-type".to_owned(), kind.to_owned()));
                    cx.cloud.call(request).await?;
                }
                Ok(Step::done())
            }
            Operation::Delete => {
                if let Some(name) = cx.facts.physical_id.as_deref() {
                    ZAQAR.delete(cx, path_of(name)).await?;
                }
                Ok(Step::done())
            }
            Operation::Check => ZAQAR.get(cx, path_of(cx.facts.require_id()?)).await.map(|_| Step::done()),
            Operation::Suspend | Operation::Resume | Operation::Adopt | Operation::Snapshot => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, _operation: &Operation, _state: &Value) -> Result<Step, Failure> {
        ZAQAR.put(cx, path_of(cx.facts.require_id()?), Value::Map(metadata(cx.facts))).await?;
        Ok(Step::done())
    }

    /// No call is made before the ID is stored.
    async fn find(&self, _cx: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let metadata = ZAQAR.get(cx, path_of(cx.facts.require_id()?)).await?;
        self.live_in(cx, &metadata).await
    }

    /// The answer is the metadata, with entries of Zaqar itself.
    async fn live_in(&self, cx: &Context<'_>, metadata: &Value) -> Result<Map, Failure> {
        let name = cx.facts.require_id()?;
        Ok(Map::from([("name".to_owned(), name.into()), ("metadata".to_owned(), metadata.clone())]))
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let Some(id) = cx.facts.physical_id.as_deref() else { return Ok(Map::new()) };
        let mut values = Map::new();
        for name in names {
            let value = match *name {
                "queue_id" => id.into(),
                "href" => {
                    let base = cx.cloud.endpoint(ZAQAR.0).await?.unwrap_or_default();
                    format!("{}/v2/queues/{}", base.trim_end_matches('/'), path::segment(id)).into()
                }
                "show" => match ZAQAR.get(cx, path_of(id)).await {
                    Ok(metadata) => value!({"metadata": metadata}),
                    Err(failure) if failure.is_not_found() => Value::Null,
                    Err(failure) => return Err(failure),
                },
                _ => Value::Null,
            };
            values.insert((*name).to_owned(), value);
        }
        Ok(values)
    }
}
