//! AWS::EC2::Subnet

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Map, Value};

use super::vpc::{connect, disconnect, router_of};
use crate::rest::Shape;

/// A subnet of a VPC, connected to its router.
pub(super) struct Subnet;

/// The router of the VPC of the subnet.
async fn router(cx: &Context<'_>) -> Result<Option<String>, Failure> {
    let network = kiln_value::text::str(cx.facts.property("VpcId"));
    Ok(router_of(cx, &network).await?.and_then(|router| router.str_at("id").map(str::to_owned)))
}

#[async_trait]
impl Shape for Subnet {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        body.insert("name".to_owned(), cx.facts.physical_name.as_str().into());
        body.insert("ip_version".to_owned(), Value::Int(4));
        Ok(())
    }

    fn has_more(&self, _: &Facts) -> bool {
        true
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, _: &Value) -> Result<(), Failure> {
        match router(cx).await? {
            Some(router) => connect(cx, &router, id).await,
            None => Ok(()),
        }
    }

    async fn before_delete(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        match router(cx).await {
            Ok(Some(router)) => disconnect(cx, &router, id).await,
            // The VPC is gone.
            Err(failure) if !failure.is_not_found() => Err(failure),
            _ => Ok(()),
        }
    }

    async fn attribute(&self, cx: &Context<'_>, _: &Value, name: &str) -> Result<Option<Value>, Failure> {
        Ok((name == "AvailabilityZone").then(|| cx.facts.property(name).clone()))
    }
}
