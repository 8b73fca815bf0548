//! Network interfaces of a server: ports that Kiln creates for it, and Nova's `networks`.

use kiln_resource::{Context, Failure};
use kiln_value::{Class, Map, Value, value};

use crate::call::{NEUTRON, made_id, security_group_ids, without_nulls};
use crate::path;

/// Entry of the resource data with the IDs of the ports that Kiln created, in Heat's format: `[{"id": …}]`.
pub(super) const INTERNAL_PORTS: &str = "internal_ports";

/// `auto` or `none` if the template lets Nova choose the networks.
pub(super) fn allocation(networks: &Value) -> Option<&str> {
    networks.as_list().unwrap_or_default().iter().find_map(|network| network.str_at("allocate_network"))
}

/// The IDs of the ports that Kiln created for the server.
pub(super) fn internal_ports(data: &Map) -> Vec<String> {
    let text = data.get(INTERNAL_PORTS).and_then(Value::as_str).unwrap_or("[]");
    let parsed = kiln_yaml::json::parse(text).unwrap_or_default();
    parsed.as_list().unwrap_or_default().iter().filter_map(|port| port.str_at("id").map(str::to_owned)).collect()
}

/// The entry of the resource data for these ports; null for none.
pub(super) fn ports_entry(ids: &[String]) -> Value {
    if ids.is_empty() {
        return Value::Null;
    }
    let ports: Value = ids.iter().map(|id| value!({"id": id})).collect();
    kiln_value::text::json(&ports).into()
}

fn text<'a>(network: &'a Value, key: &str) -> Option<&'a str> {
    network.str_at(key).filter(|text| !text.is_empty())
}

/// Whether a port must be created for an interface: Nova does not accept a subnet.
fn needs_port(network: &Value) -> bool {
    text(network, "port").is_none() && text(network, "subnet").is_some()
}

/// The network of an interface, given by itself or by its subnet.
pub(super) async fn network_id(cx: &Context<'_>, network: &Value) -> Result<Option<String>, Failure> {
    let own = text(network, "network").map(str::to_owned);
    let Some(subnet) = text(network, "subnet") else { return Ok(own) };
    let path = format!("/v2.0/subnets/{}", path::segment(subnet));
    let of_subnet = NEUTRON.show(cx, path, "subnet").await?.str_at("network_id").map(str::to_owned);
    match (&own, &of_subnet) {
        (Some(own), Some(other)) if own != other => {
            let message = format!("Specified subnet {subnet} does not belongs to network {own}.");
            Err(Failure::other(Class::StackValidationFailed, message))
        }
        _ => Ok(own.or(of_subnet)),
    }
}

/// The interfaces of a create request, and the ports that were created for them.
pub(super) struct Interfaces {
    /// The value of `networks` in the request.
    pub(super) request: Value,
    /// IDs of the created ports.
    pub(super) made: Vec<String>,
}

/// Creates the required ports and associates floating IPs with them. Ports of earlier attempts are reused; if a request
/// is refused, all of them are deleted.
pub(super) async fn prepare(cx: &Context<'_>, networks: &[Value]) -> Result<Interfaces, Failure> {
    let mut made = Vec::new();
    match interfaces(cx, networks, &mut made).await {
        Ok(request) => Ok(Interfaces { request, made }),
        Err(failure) => {
            if !failure.is_passing() {
                discard(cx, &made).await;
            }
            Err(failure)
        }
    }
}

async fn interfaces(cx: &Context<'_>, networks: &[Value], made: &mut Vec<String>) -> Result<Value, Failure> {
    let earlier = if networks.iter().any(needs_port) { marked(cx).await? } else { Vec::new() };
    let mut request: Vec<Value> = Vec::with_capacity(networks.len());
    for (number, network) in networks.iter().enumerate() {
        let mut port = text(network, "port").map(str::to_owned);
        if needs_port(network) {
            let name = port_name(cx, network, number);
            let id = match earlier.iter().find(|port| port.str_at("name") == Some(&name)) {
                Some(port) => port.str_at("id").unwrap_or_default().to_owned(),
                None => create_port(cx, network, &name).await?,
            };
            made.push(id.clone());
            port = Some(id);
        }
        if let (Some(port), Some(floating)) = (&port, text(network, "floating_ip")) {
            tie(cx, floating, port, text(network, "fixed_ip")).await?;
        }
        let mut interface = Map::new();
        if let Some(port) = port {
            interface.insert("port".into(), port.into());
        } else {
            if let Some(id) = network_id(cx, network).await? {
                interface.insert("uuid".into(), id.into());
            }
            if let Some(address) = text(network, "fixed_ip") {
                interface.insert("fixed_ip".into(), address.into());
            }
        }
        if let Some(tag) = text(network, "tag") {
            interface.insert("tag".into(), tag.into());
        }
        request.push(Value::Map(interface));
    }
    Ok(request.into())
}

/// The description of the port in the template.
fn own_description(network: &Value) -> Option<&str> {
    network.get("port_extra_properties")?.get("value_specs")?.str_at("description").filter(|text| !text.is_empty())
}

/// The name of the port of an interface, as in Heat. If its description cannot contain the mark, the name does.
fn port_name(cx: &Context<'_>, network: &Value, number: usize) -> String {
    let name = format!("{}-port-{number}", cx.facts.name);
    if own_description(network).is_some() { format!("{name}-{}", cx.facts.id) } else { name }
}

/// The ports that were created for the resource by any attempt: they are marked with its ID, which differs from that of
/// a replacement.
pub(super) async fn marked(cx: &Context<'_>) -> Result<Vec<Value>, Failure> {
    let mark = cx.facts.id.as_str();
    if mark.is_empty() {
        return Ok(Vec::new());
    }
    let mut ports = NEUTRON.list(cx, "/v2.0/ports", &[("description", mark)], "ports").await?;
    ports.retain(|port| port.str_at("description") == Some(mark));
    let networks = cx.facts.property("networks").as_list().unwrap_or_default().iter().enumerate();
    for (number, network) in networks.filter(|(_, network)| own_description(network).is_some()) {
        let name = port_name(cx, network, number);
        let named = NEUTRON.list(cx, "/v2.0/ports", &[("name", &name)], "ports").await?;
        ports.extend(named.into_iter().filter(|port| port.str_at("name") == Some(&name)));
    }
    Ok(ports)
}

/// Whether ports may have been created for the resource.
pub(super) fn may_have_ports(cx: &Context<'_>) -> bool {
    let networks = cx.facts.property("networks").as_list().unwrap_or_default();
    !internal_ports(&cx.facts.data).is_empty()
        || networks.iter().any(needs_port)
        || (!networks.is_empty() && cx.facts.property("security_groups").is_truthy())
}

/// Creates a port for an interface, marked with the ID of the resource.
async fn create_port(cx: &Context<'_>, network: &Value, name: &str) -> Result<String, Failure> {
    let mut address = Map::new();
    for (key, wire) in [("fixed_ip", "ip_address"), ("subnet", "subnet_id")] {
        if let Some(text) = text(network, key) {
            address.insert(wire.into(), text.into());
        }
    }
    let mut port = Map::new();
    port.insert("network_id".into(), network_id(cx, network).await?.into());
    if !address.is_empty() {
        port.insert("fixed_ips".into(), value!([address]));
    }
    let groups = security_groups(cx).await?;
    if !groups.is_empty() {
        port.insert("security_groups".into(), groups.into());
    }
    if let Some(extra) = network.get("port_extra_properties").and_then(Value::as_map) {
        port.extend(extra_properties(extra));
    }
    port.insert("name".into(), name.into());
    port.entry("description".into()).or_insert_with(|| cx.facts.id.as_str().into());
    let body = NEUTRON.post(cx, "/v2.0/ports", value!({"port": port})).await?;
    let id = body.get("port").and_then(|port| port.str_at("id"));
    made_id(id, "a port").map(str::to_owned)
}

/// What Neutron does not change of a port that is in use.
const FIXED: [&str; 3] = ["mac_address", "binding:vnic_type", "no_fixed_ips"];

/// Gives the further properties of the template to a port that was created for the server.
pub(super) async fn settle_port(cx: &Context<'_>, network: &Value, port: &str) -> Result<(), Failure> {
    let Some(extra) = network.get("port_extra_properties").and_then(Value::as_map) else { return Ok(()) };
    let mut extra = extra.clone();
    extra.retain(|name, _| !FIXED.contains(&name.as_str()));
    let path = format!("/v2.0/ports/{}", path::segment(port));
    let present = NEUTRON.show(cx, &path, "port").await?;
    let mut wanted = extra_properties(&extra);
    wanted.retain(|name, value| present.get(name) != Some(value));
    if wanted.is_empty() {
        return Ok(());
    }
    NEUTRON.put(cx, path, value!({"port": wanted})).await.map(|_| ())
}

fn extra_properties(extra: &Map) -> Map {
    let mut port = Map::new();
    let mut extra = without_nulls(extra.clone());
    if let Some(Value::Map(specs)) = extra.shift_remove("value_specs") {
        port.extend(specs);
    }
    if extra.shift_remove("no_fixed_ips").is_some_and(|no| no.is_truthy()) {
        port.insert("fixed_ips".into(), Value::List(Vec::new()));
    }
    if let Some(policy) = extra.shift_remove("qos_policy").as_ref().and_then(Value::as_str) {
        port.insert("qos_policy_id".into(), policy.into());
    }
    if let Some(Value::List(pairs)) = extra.get_mut("allowed_address_pairs") {
        for pair in pairs.iter_mut().filter_map(Value::as_map_mut) {
            pair.retain(|_, value| !value.is_null());
        }
    }
    port.extend(extra);
    port
}

/// The IDs of the security groups of the server.
pub(super) async fn security_groups(cx: &Context<'_>) -> Result<Vec<Value>, Failure> {
    security_group_ids(cx, cx.facts.property("security_groups").as_list().unwrap_or_default()).await
}

/// Deletes ports that belong to no server; the delete of the resource deletes the rest.
pub(super) async fn discard(cx: &Context<'_>, ports: &[String]) {
    for port in ports {
        if let Err(failure) = discard_port(cx, port).await {
            tracing::warn!(port, %failure, "failed to delete a port of a server that was not created");
        }
    }
}

async fn discard_port(cx: &Context<'_>, port: &str) -> Result<(), Failure> {
    let found = NEUTRON.seek(cx, format!("/v2.0/ports/{}", path::segment(port)), "port").await?;
    match found.as_ref().and_then(|port| port.str_at("device_id")) {
        // It belongs to a server that was created unnoticed.
        Some(device) if !device.is_empty() => Ok(()),
        _ => delete_port(cx, port).await,
    }
}

/// Deletes a port; succeeds if it does not exist.
pub(super) async fn delete_port(cx: &Context<'_>, port: &str) -> Result<(), Failure> {
    NEUTRON.delete(cx, format!("/v2.0/ports/{}", path::segment(port))).await
}

/// Associates a floating IP with a port.
pub(super) async fn tie(cx: &Context<'_>, floating: &str, port: &str, fixed_ip: Option<&str>) -> Result<(), Failure> {
    let mut body = value!({"port_id": port});
    if let (Some(body), Some(address)) = (body.as_map_mut(), fixed_ip) {
        body.insert("fixed_ip_address".into(), address.into());
    }
    let path = format!("/v2.0/floatingips/{}", path::segment(floating));
    NEUTRON.put(cx, path, value!({"floatingip": body})).await.map(|_| ())
}

/// Disassociates a floating IP; succeeds if it does not exist.
pub(super) async fn untie(cx: &Context<'_>, floating: &str) -> Result<(), Failure> {
    let path = format!("/v2.0/floatingips/{}", path::segment(floating));
    let body = value!({"floatingip": {"port_id": null}});
    crate::call::absent_is_fine(NEUTRON.put(cx, path, body).await)
}

/// A port for an interface that an update adds: one left by an interrupted attempt, else a new one.
pub(super) async fn spare_port(cx: &Context<'_>, network: &Value, number: usize) -> Result<String, Failure> {
    let name = port_name(cx, network, number);
    let known = internal_ports(&cx.facts.data);
    let is_spare = |port: &&Value| {
        let id = port.str_at("id").unwrap_or_default();
        port.str_at("name") == Some(&name)
            && port.str_at("device_id").is_none_or(str::is_empty)
            && !known.iter().any(|k| k == id)
    };
    match marked(cx).await?.iter().find(is_spare).and_then(|port| port.str_at("id")) {
        Some(id) => Ok(id.to_owned()),
        None => create_port(cx, network, &name).await,
    }
}
