//! What a server shows of its properties, for comparisons.

use kiln_resource::{Context, Facts, Failure};
use kiln_value::{Map, Value};

use super::networks;
use crate::call::NEUTRON;

/// The first microversion that shows the tags of a server.
pub(super) const MICROVERSION: &str = "2.26";

/// The properties in the server itself.
pub(super) fn in_server(facts: &Facts, server: &Value) -> Map {
    let read = |name: &str| Some((name.to_owned(), server.get(name)?.clone()));
    // A server that was booted from a volume shows no image.
    let part = |name: &str| Some((name.to_owned(), server.get(name)?.get("id")?.clone()));
    let parts = ["image", "flavor"].into_iter().filter_map(part);
    // A server that is not built has no zone, and the template may name a host of it.
    let zone = server.str_at("OS-EXT-AZ:availability_zone").filter(|zone| !zone.is_empty());
    let in_template = facts.property("availability_zone");
    let is_in = |zone: &&str| {
        let rest = in_template.as_str().and_then(|text| text.strip_prefix(zone));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    let zone = zone.map(|zone| if is_in(&zone) { in_template.clone() } else { zone.into() });
    let others = [
        ("diskConfig", server.get("OS-DCF:diskConfig").cloned()),
        // An empty text is none.
        ("config_drive", server.get("config_drive").map(|drive| drive.is_truthy().into())),
        ("availability_zone", zone),
    ];
    let others = others.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let devices = ["block_device_mapping", "block_device_mapping_v2"];
    let devices =
        devices.into_iter().filter_map(|name| Some((name.to_owned(), devices_of(facts.property(name), server)?)));
    let read = ["name", "metadata", "key_name", "tags"].into_iter().filter_map(read);
    read.chain(parts).chain(others).chain(devices).collect()
}

/// The devices of the template, if it has some, without volumes that are not attached. Others may attach further ones.
fn devices_of(given: &Value, server: &Value) -> Option<Value> {
    let given = given.as_list().filter(|given| !given.is_empty())?;
    let attached = server.get("os-extended-volumes:volumes_attached").and_then(Value::as_list).unwrap_or_default();
    let is_there = |device: &&Value| match device.str_at("volume_id").filter(|id| !id.is_empty()) {
        Some(volume) => attached.iter().any(|one| one.str_at("id") == Some(volume)),
        None => true,
    };
    Some(given.iter().filter(is_there).cloned().collect())
}

/// The networks and security groups, in the ports of the server; only if the template gives them.
pub(super) async fn in_ports(cx: &Context<'_>, id: &str) -> Result<Map, Failure> {
    let (given, groups) = (cx.facts.property("networks"), cx.facts.property("security_groups"));
    let mut live = Map::new();
    if !given.is_truthy() && !groups.is_truthy() {
        return Ok(live);
    }
    let ports = NEUTRON.list(cx, "/v2.0/ports", &[("device_id", id)], "ports").await?;
    let entries = given.as_list().filter(|_| networks::allocation(given).is_none()).unwrap_or_default();
    let mut shown = interfaces(entries, &ports, &networks::internal_ports(&cx.facts.data));
    if groups.is_truthy() {
        let wanted = networks::security_groups(cx).await?;
        // A port of the template has groups of its own, and so has an interface that others have attached.
        let is_own = |one: &&Shown<'_>| match one.given {
            Some(entry) => !has_port(entry),
            None => entries.is_empty(),
        };
        let own = shown.iter().filter(is_own).map(|one| one.port);
        live.insert("security_groups".to_owned(), security_groups(groups, &wanted, own));
    }
    if entries.is_empty() {
        live.insert("networks".to_owned(), given.clone());
    } else {
        for interface in &mut shown {
            keep_floating_ip(cx, interface).await?;
        }
        live.insert("networks".to_owned(), shown.into_iter().map(|shown| Value::Map(shown.entry)).collect());
    }
    Ok(live)
}

/// Whether the template names the port of an interface.
fn has_port(entry: &Value) -> bool {
    entry.get("port").is_some_and(Value::is_truthy)
}

/// Whether a port was created for the server.
fn is_own(port: &Value, own: &[String]) -> bool {
    port.str_at("id").is_some_and(|id| own.iter().any(|own| own == id))
}

/// The groups of ports: `given` if all have the `wanted` ones.
fn security_groups<'a>(given: &Value, wanted: &[Value], mut ports: impl Iterator<Item = &'a Value>) -> Value {
    let other = ports.find_map(|port| {
        let groups = port.get("security_groups").and_then(Value::as_list).unwrap_or_default();
        let is_wanted = groups.len() == wanted.len() && wanted.iter().all(|wanted| groups.contains(wanted));
        (!is_wanted).then(|| groups.to_vec())
    });
    other.map_or_else(|| given.clone(), Value::List)
}

/// An interface.
struct Shown<'a> {
    /// Its entry in the template; `None`: others have attached it.
    given: Option<&'a Value>,
    /// What `networks` would say to have it.
    entry: Map,
    port: &'a Value,
}

/// The interfaces in the order of the template; those that it does not have follow. `own`: IDs of the ports that were created for
/// the server, of which the template may give further properties.
fn interfaces<'a>(given: &'a [Value], ports: &'a [Value], own: &[String]) -> Vec<Shown<'a>> {
    let mut left: Vec<&Value> = ports.iter().collect();
    let mut shown: Vec<Option<Shown<'_>>> = given.iter().map(|_| None).collect();
    // Two entries of one network may differ in their port only, and a port that was made for the server may have moved.
    for keys in [&ALL[..], &ALL[..PLACE], &[]] {
        for (entry, shown) in given.iter().zip(&mut shown).filter(|(_, shown)| shown.is_none()) {
            let is_as_given = |key: &&str, present: &Map| {
                entry.get(key).is_none_or(|own| !own.is_truthy() || present.get(*key) == Some(own))
            };
            let fits = |port: &&Value| {
                let present = present(entry, port, own);
                let is_known = !keys.is_empty() || (is_own(port, own) && !has_port(entry));
                is_known && keys.iter().all(|key| is_as_given(key, &present))
            };
            if let Some(at) = left.iter().position(fits) {
                let port = left.remove(at);
                *shown = Some(Shown { given: Some(entry), entry: present(entry, port, own), port });
            }
        }
    }
    let foreign = left.into_iter().map(|port| {
        let text = |key: &str| port.get(key).cloned().unwrap_or_default();
        let entry = Map::from([("network".to_owned(), text("network_id")), ("port".to_owned(), text("id"))]);
        Shown { given: None, entry, port }
    });
    shown.into_iter().flatten().chain(foreign).collect()
}

/// All that a port shows; the first ones say where the interface is.
const ALL: [&str; 5] = ["port", "network", "subnet", "fixed_ip", PORT_PROPERTIES];
const PLACE: usize = 4;
const PORT_PROPERTIES: &str = "port_extra_properties";

/// The values that an entry of the template has in a port; what a port does not show, as it is given.
fn present(entry: &Value, port: &Value, own: &[String]) -> Map {
    let addresses = port.get("fixed_ips").and_then(Value::as_list).unwrap_or_default();
    let one_of = |key: &str, given: &Value| {
        let mut values = addresses.iter().filter_map(|address| address.get(key));
        let first = values.clone().next();
        values.find(|value| *value == given).or(first).cloned().unwrap_or_default()
    };
    let has_port = has_port(entry);
    let is_own = is_own(port, own);
    let value = |(name, given): (&String, &Value)| {
        let value = match name.as_str() {
            _ if !given.is_truthy() => given.clone(),
            // The port decides where the interface is.
            "network" | "subnet" | "fixed_ip" if has_port => given.clone(),
            "port" => port.get("id").cloned().unwrap_or_default(),
            "network" => port.get("network_id").cloned().unwrap_or_default(),
            "subnet" => one_of("subnet_id", given),
            "fixed_ip" => one_of("ip_address", given),
            PORT_PROPERTIES if is_own => port_properties(given, port),
            _ => given.clone(),
        };
        (name.clone(), value)
    };
    entry.as_map().into_iter().flatten().map(value).collect()
}

/// The further properties of a port.
fn port_properties(given: &Value, port: &Value) -> Value {
    let value = |(name, given): (&String, &Value)| {
        let shown = |key: &str| port.get(key).cloned().unwrap_or_default();
        let value = match name.as_str() {
            _ if given.is_null() => Value::Null,
            "value_specs" => given.as_map().into_iter().flatten().map(|(key, _)| (key.clone(), shown(key))).collect(),
            "no_fixed_ips" => shown("fixed_ips").as_list().is_none_or(<[Value]>::is_empty).into(),
            "qos_policy" => shown("qos_policy_id"),
            other => shown(other),
        };
        (name.clone(), value)
    };
    given.as_map().into_iter().flatten().map(value).collect()
}

/// The floating IP of an entry, if the port has it.
async fn keep_floating_ip(cx: &Context<'_>, interface: &mut Shown<'_>) -> Result<(), Failure> {
    let Some(given) = interface.entry.get_mut("floating_ip").filter(|given| given.is_truthy()) else { return Ok(()) };
    let path = format!("/v2.0/floatingips/{}", crate::path::segment(given.as_str().unwrap_or_default()));
    let address = NEUTRON.seek(cx, path, "floatingip").await?.unwrap_or_default();
    if address.get("port_id") != interface.port.get("id") {
        *given = Value::Null;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use kiln_value::value;

    use super::*;

    fn port(id: &str, network: &str, address: &str) -> Value {
        value!({"id": id, "network_id": network, "fixed_ips": [{"subnet_id": "s", "ip_address": address}], "admin_state_up": true})
    }

    fn entries(given: &Value, ports: &[Value]) -> Value {
        let own = ["p2".to_owned()];
        interfaces(given.as_list().unwrap_or_default(), ports, &own)
            .into_iter()
            .map(|shown| Value::Map(shown.entry))
            .collect()
    }

    #[test]
    fn interfaces_are_in_the_order_of_the_template_and_foreign_ones_follow() {
        let ports = [port("p0", "c", "10.0.0.9"), port("p1", "a", "10.0.0.1"), port("p2", "b", "10.1.0.1")];
        let given = value!([{"network": "b", "fixed_ip": null}, {"network": "a", "fixed_ip": "10.0.0.1", "tag": "x"}]);
        let mut expected = given.as_list().unwrap_or_default().to_vec();
        expected.push(value!({"network": "c", "port": "p0"}));
        assert_eq!(entries(&given, &ports), Value::List(expected));
    }

    #[test]
    fn what_no_port_has_is_missing() {
        let ports = [port("p1", "a", "10.0.0.1")];
        assert_eq!(entries(&value!([{"network": "a"}, {"network": "a"}]), &ports), value!([{"network": "a"}]));
        let moved = entries(&value!([{"network": "a", "fixed_ip": "10.0.0.7"}]), &ports);
        assert_eq!(moved, value!([{"network": "a", "port": "p1"}]));
    }

    #[test]
    fn only_ports_that_kiln_made_have_further_properties() {
        let extra = value!({"admin_state_up": false, "no_fixed_ips": false, "mac_address": null});
        let given = value!([{"network": "a", PORT_PROPERTIES: (extra.clone())}, {"network": "b", PORT_PROPERTIES: (extra.clone())}]);
        let ports = [port("p1", "a", "10.0.0.1"), port("p2", "b", "10.1.0.1")];
        let shown = value!({"admin_state_up": true, "no_fixed_ips": false, "mac_address": null});
        let expected =
            value!([{"network": "a", PORT_PROPERTIES: (extra.clone())}, {"network": "b", PORT_PROPERTIES: shown}]);
        assert_eq!(entries(&given, &ports), expected);
    }
}
