//! AWS::EC2::RouteTable and AWS::EC2::SubnetRouteTableAssociation

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, Step, TypeRules};
use kiln_value::{Map, Value, text};

use super::vpc::{connect, disconnect, has_interface, router_of, router_of_subnet, set_gateway};
use crate::queue;
use crate::rest::Shape;

/// A router of a VPC. It gets the external network of the VPC's own router.
pub(super) struct RouteTable;

#[async_trait]
impl Shape for RouteTable {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        body.insert("name".to_owned(), cx.facts.physical_name.as_str().into());
        Ok(())
    }

    fn has_more(&self, _: &Facts) -> bool {
        true
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, _: &Value) -> Result<(), Failure> {
        let own = router_of(cx, &text::str(cx.facts.property("VpcId"))).await?;
        let network = own.as_ref().and_then(|router| router.get("external_gateway_info")?.get("network_id"));
        match network {
            Some(network) => set_gateway(cx, id, Some(network)).await,
            None => Ok(()),
        }
    }
}

/// Connects a subnet to a route table instead of the router of its VPC.
pub(super) struct RouteAssociation;

/// The router and the subnet of the ID.
fn parts(id: &str) -> Option<(&str, &str)> {
    id.split_once(':')
}

/// The ID of the router of the VPC; `None` if there is none any more.
async fn default_router(cx: &Context<'_>, subnet: &str) -> Result<Option<String>, Failure> {
    match router_of_subnet(cx, subnet).await {
        Ok(router) => Ok(router.and_then(|router| router.str_at("id").map(str::to_owned))),
        Err(failure) if failure.is_not_found() => Ok(None),
        Err(failure) => Err(failure),
    }
}

impl TypeRules for RouteAssociation {}

#[async_trait]
impl Driver for RouteAssociation {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            // The ID is stored before the first call.
            Operation::Create => {
                let [router, subnet] = ["RouteTableId", "SubnetId"].map(|name| text::str(cx.facts.property(name)));
                Ok(queue::now("move").id(format!("{router}:{subnet}")))
            }
            Operation::Delete => {
                let Some((router, subnet)) = cx.facts.physical_id.as_deref().and_then(parts) else {
                    return Ok(Step::done());
                };
                disconnect(cx, router, subnet).await?;
                if let Some(own) = default_router(cx, subnet).await? {
                    connect(cx, &own, subnet).await?;
                }
                Ok(Step::done())
            }
            _ => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, _: &Operation, _: &Value) -> Result<Step, Failure> {
        let (router, subnet) = parts(cx.facts.require_id()?).unwrap_or_default();
        if let Some(own) = default_router(cx, subnet).await?.filter(|own| own != router) {
            disconnect(cx, &own, subnet).await?;
        }
        connect(cx, router, subnet).await?;
        Ok(Step::done())
    }

    /// No call is made before the ID is stored.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    async fn live(&self, cx: &Context<'_>) -> Result<Map, Failure> {
        let (router, subnet) = parts(cx.facts.require_id()?).unwrap_or_default();
        let router = has_interface(cx, router, subnet).await?.then_some(router);
        Ok(Map::from([("RouteTableId".to_owned(), router.into()), ("SubnetId".to_owned(), subnet.into())]))
    }
}
