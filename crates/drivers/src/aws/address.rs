//! AWS::EC2::EIP

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Map, Value};

use crate::call::absent_is_fine;
use crate::neutron::server_address::{associate, dissociate, external_network, server_of};
use crate::rest::{Edit, Shape};

/// A floating IP, which may belong to a server. `get_resource` returns the address.
pub(super) struct Address;

/// The entry of the resource data with the address.
const ADDRESS: &str = "address";

#[async_trait]
impl Shape for Address {
    async fn create_body(&self, cx: &Context<'_>, body: &mut Map) -> Result<(), Failure> {
        body.insert("floating_network_id".to_owned(), external_network(cx).await?);
        Ok(())
    }

    fn keep(&self, _facts: &Facts, object: &Value) -> Map {
        let address = object.get("floating_ip_address").cloned().unwrap_or_default();
        Map::from([(ADDRESS.to_owned(), address)])
    }

    fn has_more(&self, facts: &Facts) -> bool {
        facts.property("InstanceId").is_truthy()
    }

    async fn after_create(&self, cx: &Context<'_>, id: &str, _: &Value) -> Result<(), Failure> {
        match cx.facts.property("InstanceId").as_str() {
            Some(server) => associate(cx, id, server).await,
            None => Ok(()),
        }
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        match edit.changed.get("InstanceId").map(Value::as_str) {
            Some(Some(server)) => associate(cx, id, server).await,
            Some(None) => dissociate(cx, id).await,
            None => Ok(()),
        }
    }

    async fn before_delete(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        if cx.facts.property("InstanceId").is_truthy() {
            return absent_is_fine(dissociate(cx, id).await);
        }
        Ok(())
    }

    async fn attribute(&self, cx: &Context<'_>, _object: &Value, name: &str) -> Result<Option<Value>, Failure> {
        Ok((name == "AllocationId").then(|| cx.facts.physical_id.as_deref().unwrap_or_default().into()))
    }

    async fn live(&self, cx: &Context<'_>, object: &Value, live: &mut Map) -> Result<(), Failure> {
        if cx.facts.property("InstanceId").is_truthy() {
            live.insert("InstanceId".to_owned(), server_of(cx, object).await?);
        }
        Ok(())
    }

    fn reference(&self, facts: &Facts) -> Option<Value> {
        facts.data.get(ADDRESS).filter(|address| address.is_truthy()).cloned()
    }
}
