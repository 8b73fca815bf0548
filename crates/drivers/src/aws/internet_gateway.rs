//! AWS::EC2::InternetGateway and AWS::EC2::VPCGatewayAttachment

use async_trait::async_trait;
use kiln_resource::{Context, Driver, Facts, Failure, Found, Operation, Sibling, Siblings, Step, TypeRules};
use kiln_value::{Map, Value};

use super::vpc::set_gateway;
use crate::call::absent_is_fine;
use crate::neutron::server_address::external_network;
use crate::queue;

/// The external network, which exists already.
pub(super) struct InternetGateway;

impl TypeRules for InternetGateway {}

#[async_trait]
impl Driver for InternetGateway {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        Ok(match operation {
            Operation::Create => Step::done().id(cx.facts.physical_name.as_str()),
            _ => Step::done(),
        })
    }

    /// Nothing is made.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    fn needs_cloud(&self) -> bool {
        false
    }
}

/// Connects the route tables of a VPC in this stack to the external network.
pub(super) struct GatewayAttachment;

const ROUTE_TABLE: &str = "AWS::EC2::RouteTable";

/// The entry of the data with the routers, separated by commas.
const ROUTERS: &str = "routers";

fn routers(facts: &Facts) -> Vec<String> {
    let stored = facts.data.get(ROUTERS).and_then(Value::as_str).unwrap_or_default();
    stored.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect()
}

impl TypeRules for GatewayAttachment {
    fn observed_types(&self) -> &'static [&'static str] {
        &[ROUTE_TABLE]
    }

    /// The route tables of the same VPC.
    fn dependencies(&self, this: &Sibling<'_>, siblings: &Siblings<'_>) -> Vec<String> {
        let vpc = this.properties().get("VpcId");
        let tables = siblings
            .of_type(ROUTE_TABLE)
            .filter(|table| vpc.is_some_and(|vpc| !vpc.is_null()) && table.properties().get("VpcId") == vpc);
        tables.map(|table| table.name.to_owned()).collect()
    }
}

#[async_trait]
impl Driver for GatewayAttachment {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            // The ID and the routers are stored before the first call.
            Operation::Create => {
                let vpc = cx.facts.property("VpcId");
                let tables = cx.facts.observed.iter().filter(|table| table.properties.get("VpcId") == Some(vpc));
                let routers: Vec<&str> = tables.filter_map(|table| table.physical_id.as_deref()).collect();
                Ok(queue::now("attach").id(cx.facts.physical_name.as_str()).data(ROUTERS, routers.join(",")))
            }
            Operation::Delete => {
                for router in routers(cx.facts) {
                    absent_is_fine(set_gateway(cx, &router, None).await)?;
                }
                Ok(Step::done())
            }
            _ => Ok(Step::done()),
        }
    }

    async fn poll(&self, cx: &Context<'_>, _: &Operation, _: &Value) -> Result<Step, Failure> {
        let network = external_network(cx).await?;
        for router in routers(cx.facts) {
            set_gateway(cx, &router, Some(&network)).await?;
        }
        Ok(Step::done())
    }

    /// No call is made before the ID is stored.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    async fn live(&self, _: &Context<'_>) -> Result<Map, Failure> {
        Ok(Map::new())
    }
}
