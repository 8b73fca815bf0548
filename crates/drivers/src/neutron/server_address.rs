//! Floating IPs of servers: older types name the server and not its port.

use std::net::Ipv4Addr;

use kiln_resource::{Context, Failure};
use kiln_value::{Class, Value, value};

use crate::call::{NEUTRON, NOVA};
use crate::path;

/// Associates a floating IP with a port. Idempotent.
pub(crate) async fn set_port(cx: &Context<'_>, id: &str, port: Value) -> Result<(), Failure> {
    let path = format!("/v2.0/floatingips/{}", path::segment(id));
    NEUTRON.put(cx, path, value!({"floatingip": port})).await.map(|_| ())
}

/// Associates a floating IP with the first interface of a server. Idempotent.
pub(crate) async fn associate(cx: &Context<'_>, id: &str, server: &str) -> Result<(), Failure> {
    let path = format!("/servers/{}/os-interface", path::segment(server));
    let interfaces = NOVA.list(cx, path, &[], "interfaceAttachments").await?;
    let Some(first) = interfaces.first() else {
        return Err(Failure::other(
            Class::InterfaceNotFound,
            format!("No network interface found for server {server}."),
        ));
    };
    let addresses = first.get("fixed_ips").and_then(Value::as_list).unwrap_or_default();
    let mut addresses = addresses.iter().filter_map(|ip| ip.str_at("ip_address"));
    let address = addresses.find(|address| address.parse::<Ipv4Addr>().is_ok());
    set_port(cx, id, value!({"port_id": (first.get("port_id").cloned()), "fixed_ip_address": address})).await
}

/// The ID of the server to which a floating IP belongs; null without one.
pub(crate) async fn server_of(cx: &Context<'_>, address: &Value) -> Result<Value, Failure> {
    let Some(port) = address.str_at("port_id") else { return Ok(Value::Null) };
    if let Some(server) = address.get("port_details").and_then(|port| port.get("device_id")) {
        return Ok(server.clone());
    }
    let port = NEUTRON.show(cx, format!("/v2.0/ports/{}", path::segment(port)), "port").await?;
    Ok(port.get("device_id").cloned().unwrap_or_default())
}

/// Removes the association of a floating IP. Idempotent.
pub(crate) async fn dissociate(cx: &Context<'_>, id: &str) -> Result<(), Failure> {
    set_port(cx, id, value!({"port_id": null, "fixed_ip_address": null})).await
}

/// The only external network.
pub(crate) async fn external_network(cx: &Context<'_>) -> Result<Value, Failure> {
    let networks = NEUTRON.list(cx, "/v2.0/networks", &[("router:external", "True")], "networks").await?;
    match networks.as_slice() {
        [network] => Ok(network.get("id").cloned().unwrap_or_default()),
        other => Err(Failure::other(Class::Error, format!("Expected 1 external network, found {}", other.len()))),
    }
}
