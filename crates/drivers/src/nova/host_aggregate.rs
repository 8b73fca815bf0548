//! OS::Nova::HostAggregate

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure, FailureKind};
use kiln_value::{Map, Value, value};

use crate::call::{NOVA, absent_is_fine};
use crate::path;
use crate::rest::{Edit, Shape};

/// A host aggregate, with its hosts and metadata.
pub(super) struct HostAggregate;

fn item(id: &str) -> String {
    format!("/os-aggregates/{}", path::segment(id))
}

async fn act(cx: &Context<'_>, id: &str, action: &str, body: Value) -> Result<(), Failure> {
    let body = Value::from_iter([(action.to_owned(), body)]);
    NOVA.post(cx, format!("{}/action", item(id)), body).await.map(|_| ())
}

async fn add_hosts(cx: &Context<'_>, id: &str, hosts: &[&Value]) -> Result<(), Failure> {
    for host in hosts {
        match act(cx, id, "add_host", value!({"host": (*host)})).await {
            // It is a member already.
            Err(failure) if failure.kind == FailureKind::Conflict => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

async fn remove_hosts(cx: &Context<'_>, id: &str, hosts: &[&Value]) -> Result<(), Failure> {
    for host in hosts {
        absent_is_fine(act(cx, id, "remove_host", value!({"host": (*host)})).await)?;
    }
    Ok(())
}

fn items(list: &Value) -> &[Value] {
    list.as_list().unwrap_or_default()
}

#[async_trait]
impl Shape for HostAggregate {
    fn has_more(&self, facts: &Facts) -> bool {
        facts.property("hosts").is_truthy() || facts.property("metadata").is_truthy()
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, _: &Value) -> Result<(), Failure> {
        let metadata = cx.facts.property("metadata");
        if metadata.is_truthy() {
            act(cx, id, "set_metadata", value!({"metadata": (metadata.clone())})).await?;
        }
        add_hosts(cx, id, &items(cx.facts.property("hosts")).iter().collect::<Vec<_>>()).await
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        if let Some(hosts) = edit.changed.get("hosts") {
            let aggregate = NOVA.show(cx, item(id), "aggregate").await?;
            let current = aggregate.get("hosts").map(items).unwrap_or_default();
            let wanted = items(hosts);
            let added: Vec<_> = wanted.iter().filter(|host| !current.contains(host)).collect();
            add_hosts(cx, id, &added).await?;
            let removed: Vec<_> = current.iter().filter(|host| !wanted.contains(host)).collect();
            remove_hosts(cx, id, &removed).await?;
        }
        if let Some(after) = edit.changed.get("metadata") {
            // Nova removes the keys whose value is null.
            let before = edit.before.get("metadata").and_then(Value::as_map);
            let mut metadata: Map =
                before.into_iter().flat_map(Map::keys).map(|key| (key.clone(), Value::Null)).collect();
            metadata.extend(after.as_map().cloned().unwrap_or_default());
            if !metadata.is_empty() {
                act(cx, id, "set_metadata", value!({"metadata": metadata})).await?;
            }
        }
        Ok(())
    }

    async fn live(&self, _cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        let read = |name: &str| Some((name.to_owned(), object.get(name)?.clone()));
        live.extend(["hosts", "metadata"].into_iter().filter_map(read));
        Ok(())
    }

    /// Nova deletes only empty aggregates.
    async fn before_delete(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        let Some(aggregate) = NOVA.seek(cx, item(id), "aggregate").await? else { return Ok(()) };
        let hosts: Vec<_> = aggregate.get("hosts").map(items).unwrap_or_default().iter().collect();
        remove_hosts(cx, id, &hosts).await
    }
}
