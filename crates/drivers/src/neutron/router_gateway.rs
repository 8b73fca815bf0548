//! OS::Neutron::RouterGateway

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Failure, Found, Operation, Sibling, Siblings, Step, TypeRules};
use kiln_value::{Map, Value, value};

use super::{network_of, sibling_property, subnets_of};
use crate::call::{NEUTRON, absent_is_fine};
use crate::path;

/// The gateway of a router, as a separate resource. Its ID is `<router>:<network>`.
pub(super) struct RouterGateway;

impl TypeRules for RouterGateway {
    /// The interfaces of the router, and the subnets of the network, from which the gateway gets an address.
    fn dependencies(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Vec<String> {
        let router = sibling_property(this, &["router_id"]);
        let interfaces = siblings
            .of_type("OS::Neutron::RouterInterface")
            .filter(|interface| router.is_some() && sibling_property(interface, &["router", "router_id"]) == router);
        let mut names: Vec<String> = interfaces.map(|sibling| sibling.name.to_owned()).collect();
        names.extend(network_of(this).map(|network| subnets_of(network, siblings)).unwrap_or_default());
        names
    }
}

#[async_trait]
impl Driver for RouterGateway {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create => {
                let (router, network) = (text(cx, "router_id"), text(cx, "network"));
                let body = value!({"router": {"external_gateway_info": {"network_id": network}}});
                NEUTRON.put(cx, format!("/v2.0/routers/{}", path::segment(router)), body).await?;
                Ok(Step::done().id(format!("{router}:{network}")))
            }
            Operation::Delete => {
                if let Some((router, _)) = cx.facts.physical_id.as_deref().and_then(|id| id.split_once(':')) {
                    let body = value!({"router": {"external_gateway_info": {}}});
                    let path = format!("/v2.0/routers/{}", path::segment(router));
                    absent_is_fine(NEUTRON.put(cx, path, body).await)?;
                }
                Ok(Step::done())
            }
            Operation::Update { changed, .. } if !changed.is_empty() => Ok(Step::replace()),
            Operation::Update { .. }
            | Operation::Check
            | Operation::Suspend
            | Operation::Resume
            | Operation::Adopt
            | Operation::Snapshot => Ok(Step::done()),
        }
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let id = text(cx, "router_id");
        let router = NEUTRON.show(cx, format!("/v2.0/routers/{}", path::segment(id)), "router").await?;
        let network = router.get("external_gateway_info").and_then(|gateway| gateway.get("network_id")).cloned();
        Ok(Map::from([("router_id".to_owned(), id.into()), ("network".to_owned(), network.unwrap_or_default())]))
    }

    /// A router has one gateway, and setting the same gateway again has no effect.
    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        let (id, network) = (text(cx, "router_id"), text(cx, "network"));
        let router = NEUTRON.seek(cx, format!("/v2.0/routers/{}", path::segment(id)), "router").await?;
        let present = router.as_ref().and_then(|router| router.get("external_gateway_info")?.str_at("network_id"));
        let is_set = present == Some(network);
        Ok(if is_set { Found::Made(Step::done().id(format!("{id}:{network}"))) } else { Found::NotMade })
    }
}

fn text<'a>(cx: &'a Context<'_>, property: &str) -> &'a str {
    cx.facts.properties.get(property).and_then(Value::as_str).unwrap_or_default()
}
