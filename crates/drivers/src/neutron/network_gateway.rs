//! OS::Neutron::NetworkGateway

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure, FailureKind, PropertyChange, ResourceType};
use kiln_value::{Diagnostic, Value};

use crate::call::{NEUTRON, absent_is_fine};
use crate::path;
use crate::rest::{Edit, Shape, Written};
use crate::validation::failed;

/// A gateway between networks and devices, with its connections.
pub(super) struct NetworkGateway(Written);

impl NetworkGateway {
    pub(super) fn new(resource_type: &ResourceType) -> Option<Self> {
        Written::of(resource_type, CONNECTIONS).map(Self)
    }

    async fn change(&self, cx: &Context<'_>, id: &str, action: &str, connections: &Value) -> Result<(), Failure> {
        for connection in self.0.value(connections).as_list().unwrap_or_default() {
            let path = format!("/v2.0/network-gateways/{}/{action}", path::segment(id));
            match NEUTRON.put(cx, path, connection.clone()).await {
                // A repeated call: it is connected already.
                Err(failure) if failure.kind == FailureKind::Conflict && action == "connect_network" => {}
                outcome if action == "disconnect_network" => absent_is_fine(outcome)?,
                outcome => drop(outcome?),
            }
        }
        Ok(())
    }
}

const CONNECTIONS: &str = "connections";

#[async_trait]
impl Shape for NetworkGateway {
    fn has_more(&self, facts: &Facts) -> bool {
        facts.property(CONNECTIONS).is_truthy()
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, _: &Value) -> Result<(), Failure> {
        self.change(cx, id, "connect_network", cx.facts.property(CONNECTIONS)).await
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        let Some(connections) = edit.changed.get(CONNECTIONS) else { return Ok(()) };
        let before = edit.before.get(CONNECTIONS).cloned().unwrap_or_default();
        self.change(cx, id, "disconnect_network", &before).await?;
        self.change(cx, id, "connect_network", connections).await
    }

    async fn before_delete(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        self.change(cx, id, "disconnect_network", cx.facts.property(CONNECTIONS)).await
    }

    /// The devices of a gateway cannot be changed.
    fn needs_replace(&self, change: &PropertyChange) -> bool {
        change.changed.iter().any(|name| name == "devices")
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        for connection in facts.property(CONNECTIONS).as_list().unwrap_or_default() {
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
