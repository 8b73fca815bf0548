//! OS::Trove::Cluster

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure, FailureKind};
use kiln_value::{Class, Diagnostic, Map, Value};

use super::{check_datastore, check_version, has_datastore};
use crate::call::TROVE;
use crate::path::segment;
use crate::rest::Shape;
use crate::validation::{conflict, failed};

/// A cluster, which is as ready as its instances.
pub(super) struct Cluster;

fn instances(object: &Value) -> &[Value] {
    object.get("instances").and_then(Value::as_list).unwrap_or_default()
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

    /// Trove shows the instances in another form.
    async fn live(&self, _cx: &Context<'_>, _object: &Value, live: &mut Map) -> Result<(), Failure> {
        live.shift_remove("instances");
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
