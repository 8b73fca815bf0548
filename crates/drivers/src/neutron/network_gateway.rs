//! OS::Neutron::NetworkGateway

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure, FailureKind, PropertyChange};
use kiln_value::{Diagnostic, Map, Value};

use super::NEUTRON;
use crate::call::absent_is_fine;
use crate::path;
use crate::rest::{Edit, Shape};
use crate::validation::failed;

/// A gateway between networks and devices, with its connections.
pub(super) struct NetworkGateway;

/// A connection as in requests.
fn wire(connection: &Value) -> Value {
    let fields = connection.as_map().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let name = |key: &str| if key == "network" { "network_id" } else { key }.to_owned();
    Value::Map(fields.map(|(key, value)| (name(key), value.clone())).collect::<Map>())
}

async fn change(cx: &Context<'_>, id: &str, action: &str, connections: &Value) -> Result<(), Failure> {
    for connection in connections.as_list().unwrap_or_default() {
        let path = format!("/v2.0/network-gateways/{}/{action}", path::segment(id));
        match NEUTRON.put(cx, path, wire(connection)).await {
            // A repeated call: it is connected already.
            Err(failure) if failure.kind == FailureKind::Conflict && action == "connect_network" => {}
            outcome if action == "disconnect_network" => absent_is_fine(outcome)?,
            outcome => drop(outcome?),
        }
    }
    Ok(())
}

#[async_trait]
impl Shape for NetworkGateway {
    fn has_more(&self, facts: &Facts) -> bool {
        facts.property("connections").is_truthy()
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, _: &Value) -> Result<(), Failure> {
        change(cx, id, "connect_network", cx.facts.property("connections")).await
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        let Some(connections) = edit.changed.get("connections") else { return Ok(()) };
        let before = edit.before.get("connections").cloned().unwrap_or_default();
        change(cx, id, "disconnect_network", &before).await?;
        change(cx, id, "connect_network", connections).await
    }

    async fn before_delete(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        change(cx, id, "disconnect_network", cx.facts.property("connections")).await
    }

    /// The devices of a gateway cannot be changed.
    fn needs_replace(&self, change: &PropertyChange) -> bool {
        change.changed.iter().any(|name| name == "devices")
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        for connection in facts.property("connections").as_list().unwrap_or_default() {
            let id = connection.get("segmentation_id").filter(|id| !id.is_null());
            match connection.str_at("segmentation_type") {
                Some("vlan") if id.is_none() => return Err(failed("segmentation_id must be specified for using vlan")),
                Some("flat") if id.is_some_and(Value::is_truthy) => {
                    return Err(failed("segmentation_id cannot be specified except 0 for using flat"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
