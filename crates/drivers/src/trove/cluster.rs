//! OS::Trove::Cluster

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure, FailureKind};
use kiln_value::{Class, Diagnostic, Map, Value, text, value};

use super::{check_datastore, check_version, has_datastore, read_datastore, shown_networks};
use crate::call::TROVE;
use crate::path::segment;
use crate::rest::Shape;
use crate::validation::{conflict, failed};

/// A cluster, which is as ready as its instances.
pub(super) struct Cluster;

fn instances(object: &Value) -> &[Value] {
    object.get("instances").and_then(Value::as_list).unwrap_or_default()
}

/// The interfaces of an instance in a template.
fn nics(instance: &Value) -> &[Value] {
    instance.get("networks").and_then(Value::as_list).unwrap_or_default()
}

#[async_trait]
impl Shape for Cluster {
    async fn create_body(&self, _cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        if let Some(Value::List(instances)) = body.get_mut("instances") {
            let instances = instances.iter_mut().filter_map(Value::as_map_mut);
            instances.for_each(|instance| instance.retain(|_, value| value.is_truthy()));
        }
        Ok(())
    }

    /// Trove does not show the zones of the instances, and their order is its own.
    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        read_datastore(cx, object, live);
        let mut given = cx.facts.property("instances").as_list().unwrap_or_default().to_vec();
        let part = |instance: &Value, path: [&str; 2]| instance.get(path[0])?.get(path[1]).map(text::str);
        let shown = instances(object).iter().map(|instance| {
            let [flavor, size] = [["flavor", "id"], ["volume", "size"]].map(|path| part(instance, path));
            let networks = |one: &Value| {
                shown_networks(instance.get("ip"), nics(one)).unwrap_or_else(|| nics(one).to_vec().into())
            };
            let is_alike = |one: &Value| {
                one.get("flavor").map(text::str) == flavor && one.get("volume_size").map(text::str) == size
            };
            let is_it = |one: &Value| is_alike(one) && networks(one).as_list() == Some(nics(one));
            let Some(at) = given.iter().position(is_it).or_else(|| given.iter().position(is_alike)) else {
                return value!({"flavor": flavor, "volume_size": size});
            };
            let mut one = given.swap_remove(at);
            let shown = networks(&one);
            if let Some(one) = one.as_map_mut().filter(|one| one.contains_key("networks")) {
                one.insert("networks".to_owned(), shown);
            }
            one
        });
        let shown = shown.collect();
        live.insert("instances".to_owned(), shown);
        Ok(())
    }

    fn state(&self, object: &Value) -> Option<String> {
        // The response to a create does not show them.
        let states = || instances(object).iter().map(|instance| instance.str_at("status").unwrap_or("BUILD"));
        let bad = states().find(|state| matches!(*state, "ERROR" | "FAILED"));
        let worst = bad.or_else(|| states().find(|state| *state != "ACTIVE"));
        Some(worst.unwrap_or("ACTIVE").to_owned())
    }

    fn reason(&self, _facts: &Facts, object: &Value) -> Option<String> {
        super::reason(&self.state(object)?)
    }

    /// A cluster that is busy with another task cannot be deleted.
    async fn before_delete(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        let cluster = TROVE.seek(cx, format!("/clusters/{}", segment(id)), "cluster").await?;
        let task = cluster.as_ref().and_then(|cluster| cluster.get("task")?.str_at("name"));
        match task {
            Some(task) if task != "NONE" && task != "DELETING" => {
                let text = format!("The cluster is busy with the task {task}");
                Err(Failure::new(FailureKind::Busy, Class::Conflict, text))
            }
            _ => Ok(()),
        }
    }

    async fn attribute(&self, _cx: &Context<'_>, object: &Value, name: &str) -> Result<Option<Value>, Failure> {
        let ids = || instances(object).iter().map(|instance| instance.get("id").cloned().unwrap_or_default()).collect();
        Ok((name == "instances").then(ids))
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        check_datastore(facts)?;
        let given = facts.property("instances").as_list().unwrap_or_default();
        let networks = given.iter().filter_map(|instance| instance.get("networks")?.as_list()).flatten();
        for network in networks {
            let has = |name: &str| network.get(name).is_some_and(|value| !value.is_null());
            match (has("network"), has("port")) {
                (true, true) => return Err(conflict(&["network", "port"])),
                (false, false) => return Err(failed("Either network or port must be provided.")),
                _ => {}
            }
        }
        Ok(())
    }

    fn validates_in_cloud(&self, facts: &Facts) -> bool {
        has_datastore(facts)
    }

    async fn validate_in_cloud(&self, cx: &Context<'_>) -> Result<(), Diagnostic> {
        check_version(cx).await
    }
}
