//! OS::Neutron::Net

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure, FailureKind};
use kiln_value::{Map, Value, value};

use super::agent_ids;
use crate::call::NEUTRON;
use crate::path;
use crate::rest::{Edit, Shape};

/// A network with its DHCP agents and segments.
pub(super) struct Net;

#[async_trait]
impl Shape for Net {
    async fn create_body(&self, _cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        body.shift_remove("dhcp_agent_ids");
        Ok(())
    }

    async fn update_body(&self, _cx: &Context<'_>, _edit: &Edit<'_>, body: &mut Map) -> Result<(), Failure> {
        body.shift_remove("dhcp_agent_ids");
        Ok(())
    }

    fn has_more(&self, facts: &Facts) -> bool {
        facts.property("dhcp_agent_ids").is_truthy()
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, _: &Value) -> Result<(), Failure> {
        match cx.facts.property("dhcp_agent_ids") {
            agents if agents.is_truthy() => set_dhcp_agents(cx, id, agents).await,
            _ => Ok(()),
        }
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        match edit.changed.get("dhcp_agent_ids") {
            Some(agents) => set_dhcp_agents(cx, id, agents).await,
            None => Ok(()),
        }
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        if cx.facts.property("dhcp_agent_ids").is_truthy() {
            let agents = dhcp_agents(cx, object.str_at("id").unwrap_or_default()).await?;
            live.insert("dhcp_agent_ids".to_owned(), agents.into());
        }
        Ok(())
    }

    async fn attribute(&self, cx: &Context<'_>, object: &Value, name: &str) -> Result<Option<Value>, Failure> {
        if name != "segments" {
            return Ok(None);
        }
        let network = object.str_at("id").unwrap_or_default();
        let mut segments = NEUTRON.list(cx, "/v2.0/segments", &[("network_id", network)], "segments").await?;
        // Segments without a name come first.
        segments.sort_by_key(|segment| segment.str_at("name").is_some());
        Ok(Some(Value::List(segments)))
    }
}

/// The IDs of the DHCP agents of a network.
async fn dhcp_agents(cx: &Context<'_>, id: &str) -> Result<Vec<Value>, Failure> {
    agent_ids(cx, format!("/v2.0/networks/{}/dhcp-agents", path::segment(id))).await
}

/// Assigns exactly these agents to the network. Refusals because the state is already reached are ignored.
async fn set_dhcp_agents(cx: &Context<'_>, id: &str, wanted: &Value) -> Result<(), Failure> {
    let network = path::segment(id);
    let present = dhcp_agents(cx, id).await?;
    let present: Vec<&str> = present.iter().filter_map(Value::as_str).collect();
    let wanted: Vec<&str> = wanted.as_list().unwrap_or_default().iter().filter_map(Value::as_str).collect();
    for agent in wanted.iter().filter(|agent| !present.contains(agent)) {
        let path = format!("/v2.0/agents/{}/dhcp-networks", path::segment(agent));
        match NEUTRON.post(cx, path, value!({"network_id": id})).await {
            Err(failure) if failure.kind != FailureKind::Conflict => return Err(failure),
            _ => {}
        }
    }
    for agent in present.iter().filter(|agent| !wanted.contains(agent)) {
        let path = format!("/v2.0/agents/{}/dhcp-networks/{network}", path::segment(agent));
        match NEUTRON.delete(cx, path).await {
            Err(failure) if failure.kind != FailureKind::Conflict => return Err(failure),
            _ => {}
        }
    }
    Ok(())
}
