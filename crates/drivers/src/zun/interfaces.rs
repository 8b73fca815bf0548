//! The network interfaces of a container.

use std::time::Duration;

use kiln_resource::{CloudRequest, Context, Failure, Method, Step};
use kiln_value::{Map, Value, value};

use crate::call::items;
use crate::path::segment;
use crate::queue;

/// The stage of an update.
pub(super) const STAGE: &str = "interfaces";

const VERSION: &str = "1.36";

fn request(cx: &Context<'_>, method: Method, what: &str) -> Result<CloudRequest, Failure> {
    let path = format!("/v1/containers/{}/{what}", segment(cx.facts.require_id()?));
    Ok(CloudRequest::new("container", method, path).microversion(VERSION))
}

fn given<'a>(network: &'a Value, key: &str) -> Option<&'a str> {
    network.get(key).and_then(Value::as_str).filter(|value| !value.is_empty())
}

/// Whether an interface is what the template describes.
fn is_as_given(network: &Value, interface: &Value) -> bool {
    if let Some(port) = given(network, "port") {
        return interface.str_at("port_id") == Some(port);
    }
    let addresses = interface.get("fixed_ips").and_then(Value::as_list).unwrap_or_default();
    let has = |address: &str| addresses.iter().any(|own| own.str_at("ip_address") == Some(address));
    given(network, "network") == interface.str_at("net_id") && given(network, "fixed_ip").is_none_or(has)
}

/// The interfaces of a container, like those of a list. Zun shows their addresses by network.
fn interfaces(container: &Value) -> Option<Vec<Value>> {
    let mut interfaces: Vec<Value> = Vec::new();
    for (network, addresses) in container.get("addresses")?.as_map()? {
        for address in addresses.as_list().unwrap_or_default() {
            let port = address.get("port").cloned().unwrap_or_default();
            let ip = value!({"ip_address": (address.get("addr").cloned())});
            let known = interfaces.iter().position(|interface| interface.get("port_id") == Some(&port));
            let known = known.and_then(|at| interfaces.get_mut(at)?.as_map_mut()?.get_mut("fixed_ips"));
            if let Some(Value::List(ips)) = known {
                ips.push(ip);
            } else {
                interfaces.push(value!({"net_id": (network.as_str()), "port_id": port, "fixed_ips": [ip]}));
            }
        }
    }
    Some(interfaces)
}

/// The given networks to which a container is connected, and those of others.
pub(super) fn shown(networks: &Value, container: &Value) -> Option<Value> {
    let mut present = interfaces(container)?;
    let mut shown = Vec::new();
    for network in networks.as_list().unwrap_or_default() {
        if let Some(at) = present.iter().position(|interface| is_as_given(network, interface)) {
            present.swap_remove(at);
            shown.push(network.clone());
        }
    }
    let part = |interface: &Value, key: &str| interface.get(key).cloned();
    let other = |own: &Value| value!({"network": (part(own, "net_id")), "port": (part(own, "port_id"))});
    shown.extend(present.iter().map(other));
    Some(shown.into())
}

/// The network interfaces in the body of a create.
pub(super) fn wire(networks: &Value) -> Value {
    let wire = |network: &Value| {
        let mut wire: Map = ["network", "port"]
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), given(network, key)?.into())))
            .collect();
        if let (Some(address), None) = (given(network, "fixed_ip"), given(network, "port")) {
            let key = if address.contains(':') { "v6-fixed-ip" } else { "v4-fixed-ip" };
            wire.insert(key.to_owned(), address.into());
        }
        Value::from(wire)
    };
    networks.as_list().unwrap_or_default().iter().map(wire).collect()
}

fn count(interfaces: &[Value]) -> i64 {
    i64::try_from(interfaces.len()).unwrap_or(i64::MAX)
}

/// Detaches or attaches the next interface, until they are as given. Zun does so in the background: `state` says for
/// what it waits.
pub(super) async fn settle(cx: &Context<'_>, state: &Value) -> Result<Step, Failure> {
    let wanted = cx.facts.property("networks").as_list().unwrap_or_default();
    let body = cx.cloud.call(request(cx, Method::Get, "network_list")?).await?.body;
    let present = items(body, "networks")?;
    let is_present = |port: &str| present.iter().any(|own| own.str_at("port_id") == Some(port));
    let is_pending = state.str_at("detached").is_some_and(is_present)
        || state.get("attached").and_then(Value::as_i64).is_some_and(|before| count(&present) <= before);
    if is_pending {
        return Ok(queue::again(cx, state, "the change of an interface"));
    }
    let mut missing: Vec<&Value> = wanted.iter().collect();
    let mut surplus: Vec<&Value> = Vec::new();
    for interface in &present {
        match missing.iter().position(|network| is_as_given(network, interface)) {
            Some(at) => drop(missing.remove(at)),
            None => surplus.push(interface),
        }
    }
    let wait = |state: Value| Ok(Step::wait(state, Duration::from_secs(1)));
    if let Some(port) = surplus.first().and_then(|interface| interface.str_at("port_id")) {
        cx.cloud.call(request(cx, Method::Post, "network_detach")?.query("port", port)).await?;
        return wait(value!({"stage": STAGE, "detached": port}));
    }
    let Some(network) = missing.first() else { return Ok(Step::done()) };
    let mut attach = request(cx, Method::Post, "network_attach")?;
    let keys: &[&str] = if given(network, "port").is_some() { &["port"] } else { &["network", "fixed_ip"] };
    for key in keys {
        if let Some(value) = given(network, key) {
            attach = attach.query(*key, value);
        }
    }
    cx.cloud.call(attach).await?;
    wait(value!({"stage": STAGE, "attached": (count(&present))}))
}
