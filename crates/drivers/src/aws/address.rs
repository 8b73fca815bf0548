//! AWS::EC2::EIP

use async_trait::async_trait;
use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Map, Value, value};

use super::{NEUTRON, NOVA};
use crate::call::absent_is_fine;
use crate::path;
use crate::rest::{Edit, Shape};

/// A floating IP, which may belong to a server. `get_resource` returns the address.
pub(super) struct Address;

/// The entry of the resource data with the address.
const ADDRESS: &str = "address";

/// Associates a floating IP with a port, or with none. Idempotent.
pub(super) async fn set_port(cx: &Context<'_>, id: &str, port: Value) -> Result<(), Failure> {
    let path = format!("/v2.0/floatingips/{}", path::segment(id));
    NEUTRON.put(cx, path, value!({"floatingip": port})).await.map(|_| ())
}

/// Associates a floating IP with the first interface of a server.
pub(super) async fn associate(cx: &Context<'_>, id: &str, server: &str) -> Result<(), Failure> {
    let path = format!("/servers/{}/os-interface", path::segment(server));
    let interfaces = NOVA.list(cx, path, &[], "interfaceAttachments").await?;
    let Some(first) = interfaces.first() else {
        return Err(Failure::other("InterfaceNotFound", format!("No network interface found for server {server}.")));
    };
    let address = first.get("fixed_ips").and_then(|ips| ips.at(0)).and_then(|ip| ip.get("ip_address"));
    let port = value!({"port_id": (first.get("port_id").cloned()), "fixed_ip_address": (address.cloned())});
    set_port(cx, id, port).await
}

/// The only external network.
async fn external_network(cx: &Context<'_>) -> Result<Value, Failure> {
    let networks = NEUTRON.list(cx, "/v2.0/networks", &[("router:external", "True")], "networks").await?;
    match networks.as_slice() {
        [network] => Ok(network.get("id").cloned().unwrap_or_default()),
        other => Err(Failure::other("Error", format!("Expected 1 external network, found {}", other.len()))),
    }
}

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

    async fn after_create(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        match cx.facts.property("InstanceId").as_str() {
            Some(server) => associate(cx, id, server).await,
            None => Ok(()),
        }
    }

    async fn before_update(&self, cx: &Context<'_>, id: &str, edit: &Edit<'_>) -> Result<(), Failure> {
        match edit.changed.get("InstanceId").map(Value::as_str) {
            Some(Some(server)) => associate(cx, id, server).await,
            Some(None) => set_port(cx, id, value!({"port_id": null})).await,
            None => Ok(()),
        }
    }

    async fn before_delete(&self, cx: &Context<'_>, id: &str) -> Result<(), Failure> {
        if cx.facts.property("InstanceId").is_truthy() {
            return absent_is_fine(set_port(cx, id, value!({"port_id": null})).await);
        }
        Ok(())
    }

    async fn attribute(&self, cx: &Context<'_>, _object: &Value, name: &str) -> Result<Option<Value>, Failure> {
        Ok((name == "AllocationId").then(|| cx.facts.physical_id.as_deref().unwrap_or_default().into()))
    }

    fn reference(&self, facts: &Facts) -> Option<Value> {
        facts.data.get(ADDRESS).filter(|address| address.is_truthy()).cloned()
    }
}
