//! OS::Neutron::Router

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure, Sibling, Siblings};
use kiln_value::{Diagnostic, Map, Value, value};

use super::{agent_ids, subnets_of};
use crate::call::NEUTRON;
use crate::path;
use crate::rest::{Edit, Shape};
use crate::validation::{conflict, failed, not_both};

/// A router with its L3 agents.
pub(super) struct Router;

const AGENTS: &str = "l3_agent_ids";
const GATEWAY: &str = "external_gateway_info";

#[async_trait]
impl Shape for Router {
    fn has_more(&self, facts: &Facts) -> bool {
        facts.property(AGENTS).is_truthy()
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, _: &Value) -> Result<(), Failure> {
        match cx.facts.property(AGENTS) {
            agents if agents.is_truthy() => set_agents(cx, id, agents).await,
            _ => Ok(()),
        }
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        match edit.changed.get(AGENTS) {
            Some(agents) => set_agents(cx, id, agents).await,
            None => Ok(()),
        }
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        if cx.facts.property(AGENTS).is_truthy() {
            let agents = agents(cx, object.str_at("id").unwrap_or_default()).await?;
            live.insert(AGENTS.to_owned(), agents.into());
        }
        Ok(())
    }

    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        not_both(facts, "l3_agent_id", AGENTS)?;
        let agents = facts.property(AGENTS);
        if facts.property("distributed").is_truthy()
            && (agents.is_truthy() || facts.property("l3_agent_id").is_truthy())
        {
            return Err(conflict(&["distributed", "l3_agent_id/l3_agent_ids"]));
        }
        not_both(facts, "distributed", "ha")?;
        if !facts.property("ha").is_truthy() && agents.as_list().is_some_and(|agents| agents.len() > 1) {
            return Err(failed("Non HA routers can only have one L3 agent."));
        }
        Ok(())
    }

    fn dependencies(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Vec<String> {
        let network = this.properties().get(GATEWAY).and_then(|gateway| gateway.get("network"));
        network.filter(|n| !n.is_null()).map_or_else(Vec::new, |network| subnets_of(network, siblings))
    }
}

/// The IDs of the L3 agents of a router.
async fn agents(cx: &Context<'_>, id: &str) -> Result<Vec<Value>, Failure> {
    agent_ids(cx, format!("/v2.0/routers/{}/l3-agents", path::segment(id))).await
}

/// Assigns exactly these agents to the router.
async fn set_agents(cx: &Context<'_>, id: &str, wanted: &Value) -> Result<(), Failure> {
    let router = path::segment(id);
    let present = agents(cx, id).await?;
    let present: Vec<&str> = present.iter().filter_map(Value::as_str).collect();
    let wanted: Vec<&str> = wanted.as_list().unwrap_or_default().iter().filter_map(Value::as_str).collect();
    for agent in present.iter().filter(|agent| !wanted.contains(agent)) {
        NEUTRON.delete(cx, format!("/v2.0/agents/{}/l3-routers/{router}", path::segment(agent))).await?;
    }
    for agent in wanted.iter().filter(|agent| !present.contains(agent)) {
        let path = format!("/v2.0/agents/{}/l3-routers", path::segment(agent));
        NEUTRON.post(cx, path, value!({"router_id": id})).await?;
    }
    Ok(())
}
