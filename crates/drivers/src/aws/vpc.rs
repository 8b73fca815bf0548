//! AWS::EC2::VPC: a network and its router, which have the same name.

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Failure, Found, Operation, Step, TypeRules};
use kiln_value::{Class, Map, Value, value};

use crate::call::{NEUTRON, made_id, take};
use crate::path::segment;
use crate::queue;

/// A VPC. Its ID is that of the network. The router is created first, so that both are found by their name after a lost
/// response.
pub(super) struct Vpc;

/// The entry of the data with the ID of the router.
const ROUTER: &str = "router_id";

const READY: &str = "ready";

/// The network or router of the resource, by its unique name.
async fn find_named(cx: &Context<'_>, many: &str) -> Result<Vec<String>, Failure> {
    let query = [("name", cx.facts.physical_name.as_str())];
    let found = NEUTRON.list(cx, format!("/v2.0/{many}"), &query, many).await?;
    Ok(found.iter().filter_map(|object| object.str_at("id").map(str::to_owned)).collect())
}

async fn create(cx: &Context<'_>, one: &str) -> Result<String, Failure> {
    let body = Map::from([(one.to_owned(), value!({"name": (cx.facts.physical_name.as_str())}))]);
    let made = take(NEUTRON.post(cx, format!("/v2.0/{one}s"), body.into()).await?, one);
    made_id(made.str_at("id"), one).map(str::to_owned)
}

fn with_router(id: impl Into<Value>) -> Step {
    Step::prepared().data(ROUTER, id)
}

fn with_network(id: String) -> Step {
    queue::now(READY).id(id)
}

/// The router of the VPC with this network; `None` for a network that is no VPC.
pub(super) async fn router_of(cx: &Context<'_>, network: &str) -> Result<Option<Value>, Failure> {
    let network = NEUTRON.show(cx, format!("/v2.0/networks/{}", segment(network)), "network").await?;
    let name = network.str_at("name").unwrap_or_default();
    let mut routers = NEUTRON.list(cx, "/v2.0/routers", &[("name", name)], "routers").await?;
    match routers.len() {
        0 | 1 => Ok(routers.pop()),
        _ => Err(Failure::other(Class::Error, format!("Multiple routers found with name {name}"))),
    }
}

/// The router of the VPC of a subnet.
pub(super) async fn router_of_subnet(cx: &Context<'_>, subnet: &str) -> Result<Option<Value>, Failure> {
    let subnet = NEUTRON.show(cx, format!("/v2.0/subnets/{}", segment(subnet)), "subnet").await?;
    router_of(cx, subnet.str_at("network_id").unwrap_or_default()).await
}

/// Whether a router has an interface in a subnet.
pub(super) async fn has_interface(cx: &Context<'_>, router: &str, subnet: &str) -> Result<bool, Failure> {
    let ports = NEUTRON.list(cx, "/v2.0/ports", &[("device_id", router)], "ports").await?;
    let mut addresses = ports.iter().filter_map(|port| port.get("fixed_ips")?.as_list()).flatten();
    Ok(addresses.any(|address| address.str_at("subnet_id") == Some(subnet)))
}

async fn change_interface(cx: &Context<'_>, router: &str, subnet: &str, action: &str) -> Result<(), Failure> {
    let path = format!("/v2.0/routers/{}/{action}_router_interface", segment(router));
    NEUTRON.put(cx, path, value!({"subnet_id": subnet})).await.map(drop)
}

/// Connects a router to a subnet. Idempotent.
pub(super) async fn connect(cx: &Context<'_>, router: &str, subnet: &str) -> Result<(), Failure> {
    if has_interface(cx, router, subnet).await? { Ok(()) } else { change_interface(cx, router, subnet, "add").await }
}

/// Disconnects a router from a subnet. Idempotent.
pub(super) async fn disconnect(cx: &Context<'_>, router: &str, subnet: &str) -> Result<(), Failure> {
    if !has_interface(cx, router, subnet).await? {
        return Ok(());
    }
    crate::call::absent_is_fine(change_interface(cx, router, subnet, "remove").await)
}

/// Sets the external network of a router; without one, it has none any more. Idempotent.
pub(super) async fn set_gateway(cx: &Context<'_>, router: &str, network: Option<&Value>) -> Result<(), Failure> {
    let gateway = network.map_or_else(|| value!({}), |network| value!({"network_id": (network.clone())}));
    let body = value!({"router": {"external_gateway_info": gateway}});
    NEUTRON.put(cx, format!("/v2.0/routers/{}", segment(router)), body).await.map(drop)
}

fn is_built(object: Option<&Value>) -> bool {
    object.and_then(|object| object.str_at("status")).is_none_or(|status| matches!(status, "ACTIVE" | "DOWN"))
}

impl TypeRules for Vpc {}

#[async_trait]
impl Driver for Vpc {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create if !cx.facts.data.contains_key(ROUTER) => Ok(with_router(create(cx, "router").await?)),
            Operation::Create => Ok(with_network(create(cx, "network").await?)),
            Operation::Delete => {
                for many in ["routers", "networks"] {
                    for id in find_named(cx, many).await? {
                        NEUTRON.delete(cx, format!("/v2.0/{many}/{}", segment(&id))).await?;
                    }
                }
                Ok(Step::done().data(ROUTER, Value::Null))
            }
            Operation::Check => {
                NEUTRON.show(cx, format!("/v2.0/networks/{}", segment(cx.facts.require_id()?)), "network").await?;
                Ok(Step::done())
            }
            _ => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, _: &Operation, state: &Value) -> Result<Step, Failure> {
        let id = cx.facts.require_id()?;
        let network = NEUTRON.show(cx, format!("/v2.0/networks/{}", segment(id)), "network").await?;
        let router = router_of(cx, id).await?;
        let is_ready = is_built(Some(&network)) && is_built(router.as_ref());
        Ok(if is_ready { Step::done() } else { queue::again(cx, state, "the network and its router") })
    }

    async fn find(&self, cx: &Context<'_>) -> Result<Found, Failure> {
        let is_router = !cx.facts.data.contains_key(ROUTER);
        let found = find_named(cx, if is_router { "routers" } else { "networks" }).await?.into_iter().next();
        let made = found.map(|id| Found::Made(if is_router { with_router(id) } else { with_network(id) }));
        Ok(made.unwrap_or(Found::NotMade))
    }
}
