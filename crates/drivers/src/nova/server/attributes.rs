//! The attributes of a server.

use kiln_resource::shared_software::add_for_agent;
use kiln_resource::{CloudRequest, Context, Failure, Method};
use kiln_value::{Class, Map, Value, value};

use super::{create, server_path};
use crate::call::{NEUTRON, NOVA, take};
use crate::path;

/// The attributes with these names, with as few requests as possible.
pub(super) async fn read(cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
    let Some(id) = cx.facts.physical_id.as_deref() else {
        return Ok(names.iter().map(|name| ((*name).to_owned(), Value::Null)).collect());
    };
    let needs_server = names.iter().any(|name| !matches!(*name, "name" | "os_collect_config"));
    let server = if needs_server { NOVA.seek(cx, server_path(id), "server").await? } else { None };
    let mut values = Map::new();
    for name in names {
        let value = match (*name, &server) {
            ("name", _) => create::name(cx.facts).into(),
            ("os_collect_config", _) => collect_config(cx),
            // For a deleted server, Heat shows an empty string for all attributes that it cannot read.
            (_, None) => "".into(),
            (name, Some(server)) => one(cx, id, server, name).await?,
        };
        values.insert((*name).to_owned(), value);
    }
    Ok(values)
}

async fn one(cx: &Context<'_>, id: &str, server: &Value, name: &str) -> Result<Value, Failure> {
    let entry = |key: &str| server.get(key).cloned().unwrap_or_default();
    Ok(match name {
        "show" => whole(cx, id).await?,
        "first_address" => first_address(server).into(),
        "networks" => by_id_too(cx, networks(server)).await?,
        "addresses" => addresses(cx, id).await?,
        "instance_name" => entry("OS-EXT-SRV-ATTR:instance_name"),
        "accessIPv4" | "accessIPv6" => entry(name),
        "console_urls" => console_urls(cx, id).await,
        "tags" => {
            let path = format!("{}/tags", server_path(id));
            let request = CloudRequest::new(NOVA.0, Method::Get, path).microversion("2.26");
            cx.cloud.call(request).await?.body.get("tags").cloned().unwrap_or_default()
        }
        _ => Value::Null,
    })
}

/// All data that Nova returns in the newest microversion, as in Heat, and Kiln's data for the guest.
async fn whole(cx: &Context<'_>, id: &str) -> Result<Value, Failure> {
    let request = CloudRequest::new(NOVA.0, Method::Get, server_path(id)).microversion("latest");
    let mut server = take(cx.cloud.call(request).await?.body, "server");
    if let Some(entries) = server.as_map_mut() {
        entries.insert("os_collect_config".into(), collect_config(cx));
    }
    Ok(server)
}

/// What the agent has to know, with the additions of the template.
fn collect_config(cx: &Context<'_>) -> Value {
    let mut metadata = cx.facts.metadata.as_map().cloned().unwrap_or_default();
    add_for_agent(&cx.facts.data, &[], &mut metadata);
    metadata.shift_remove("os-collect-config").unwrap_or_else(|| value!({}))
}

/// Addresses by network label, in the order of labels.
fn networks(server: &Value) -> Map {
    let addresses = server.get("addresses").and_then(Value::as_map);
    let mut networks: Map = addresses
        .into_iter()
        .flatten()
        .map(|(label, addresses)| {
            let addresses = addresses.as_list().unwrap_or_default();
            (label.clone(), addresses.iter().filter_map(|a| a.str_at("addr")).collect())
        })
        .collect();
    networks.sort_keys();
    networks
}

/// As in Heat: the first address of the last network by name.
fn first_address(server: &Value) -> String {
    let networks = networks(server);
    let first = networks.values().rev().find_map(|addresses| addresses.at(0)?.as_str());
    first.unwrap_or_default().to_owned()
}

/// Repeats the entries under the IDs of the networks, if a label identifies one network.
async fn by_id_too(cx: &Context<'_>, mut networks: Map) -> Result<Value, Failure> {
    let labels: Vec<String> = networks.keys().cloned().collect();
    for label in labels {
        match cx.cloud.find("neutron.network", &label).await {
            Ok(id) => {
                let addresses = networks.get(&label).cloned().unwrap_or_default();
                networks.insert(id, addresses);
            }
            Err(failure) if failure.is_not_found() || failure.class == Class::NeutronClientNoUniqueMatch => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(networks.into())
}

/// The addresses with their ports, subnets and networks, including floating IPs, by label and ID.
async fn addresses(cx: &Context<'_>, id: &str) -> Result<Value, Failure> {
    let ports = NEUTRON.list(cx, "/v2.0/ports", &[("device_id", id)], "ports").await?;
    let mut labels = Map::new();
    let mut ids = Map::new();
    for port in &ports {
        let network_id = port.str_at("network_id").unwrap_or_default();
        let network = NEUTRON.show(cx, format!("/v2.0/networks/{}", path::segment(network_id)), "network").await?;
        let mut found = Vec::new();
        for fixed in port.get("fixed_ips").and_then(Value::as_list).unwrap_or_default() {
            found.extend(of_fixed(cx, port, fixed, &network).await?);
        }
        let label = network.str_at("name").unwrap_or_default();
        for (map, key) in [(&mut labels, label), (&mut ids, network_id)] {
            let list = map.entry(key.to_owned()).or_insert_with(|| Value::List(Vec::new()));
            if let Value::List(list) = list {
                list.extend(found.iter().cloned());
            }
        }
    }
    labels.extend(ids);
    Ok(labels.into())
}

async fn of_fixed(cx: &Context<'_>, port: &Value, fixed: &Value, network: &Value) -> Result<Vec<Value>, Failure> {
    let entry = |map: &Value, key: &str| map.get(key).cloned().unwrap_or_default();
    let address = fixed.str_at("ip_address").unwrap_or_default();
    // A list with one item, as in Heat.
    let version = match address.parse() {
        Ok(std::net::IpAddr::V4(_)) => value!([4]),
        Ok(std::net::IpAddr::V6(_)) => value!([6]),
        Err(_) => Value::Null,
    };
    let mut found = Vec::new();
    if !address.is_empty() {
        let query = [("fixed_ip_address", address), ("port_id", port.str_at("id").unwrap_or_default())];
        for floating in NEUTRON.list(cx, "/v2.0/floatingips", &query, "floatingips").await? {
            found.push(value!({
                "addr": entry(&floating, "floating_ip_address"),
                "version": version.clone(),
                "OS-EXT-IPS-MAC:mac_addr": entry(port, "mac_address"),
                "OS-EXT-IPS:type": "floating",
                "port": null,
            }));
        }
    }
    let mut subnets = Vec::new();
    for id in
        port.get("fixed_ips").and_then(Value::as_list).unwrap_or_default().iter().filter_map(|f| f.str_at("subnet_id"))
    {
        subnets.push(NEUTRON.show(cx, format!("/v2.0/subnets/{}", path::segment(id)), "subnet").await?);
    }
    found.push(value!({
        "addr": address,
        "OS-EXT-IPS-MAC:mac_addr": entry(port, "mac_address"),
        "OS-EXT-IPS:type": "fixed",
        "port": entry(port, "id"),
        "version": version,
        "subnets": subnets,
        "network": network,
    }));
    Ok(found)
}

/// Kinds of consoles: kind, and its protocol in Nova's request.
const CONSOLES: [(&str, &str); 6] = [
    ("novnc", "vnc"),
    ("xvpvnc", "vnc"),
    ("spice-html5", "spice"),
    ("rdp-html5", "rdp"),
    ("serial", "serial"),
    ("webmks", "mks"),
];

/// The URL of each kind of console, or the reason why there is none.
async fn console_urls(cx: &Context<'_>, id: &str) -> Value {
    let mut urls = Map::new();
    for (kind, protocol) in CONSOLES {
        let path = format!("{}/remote-consoles", server_path(id));
        let body = value!({"remote_console": {"protocol": protocol, "type": kind}});
        let request = CloudRequest::new(NOVA.0, Method::Post, path).body(body).microversion("2.8");
        let url = match cx.cloud.call(request).await {
            Ok(response) => {
                let console = response.body.get("remote_console");
                console.and_then(|c| c.str_at("url")).unwrap_or_default().to_owned()
            }
            Err(failure) => format!("Cannot get console url: {}", failure.message),
        };
        urls.insert(kind.to_owned(), url.into());
    }
    urls.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_sorted_and_the_last_has_the_first_address() {
        let server = value!({"addresses": {
            "b": [{"addr": "10.1.0.1"}, {"addr": "fd00::1"}],
            "a": [{"addr": "10.0.0.1"}],
        }});
        let expected = value!({"a": ["10.0.0.1"], "b": ["10.1.0.1", "fd00::1"]});
        assert_eq!(Value::Map(networks(&server)), expected);
        assert_eq!(networks(&server).keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(first_address(&server), "10.1.0.1");
    }
}
