//! Addresses that are given: in the range of their subnets, and used by nobody.

use std::collections::HashMap;

use kiln_value::{Map, Value};

use super::network::{Address, Range};
use super::planned::Planned;
use super::{Finding, Findings, Flight};

/// A given address.
struct Given<'a> {
    planned: &'a Planned<'a>,
    address: &'a str,
    network: Option<&'a Value>,
    subnet: Option<&'a Value>,
}

pub(super) async fn check(flight: &Flight<'_>) -> Option<Findings> {
    let given: Vec<Given<'_>> = flight
        .work
        .resources
        .iter()
        .filter(|one| one.is_certain)
        .filter_map(|planned| Some((planned, planned.made()?)))
        .flat_map(|(planned, made)| given(planned, made))
        .collect();
    let mut found = Vec::new();
    // Two of the plan with the same one.
    let mut seen: HashMap<(String, Address), &str> = HashMap::new();
    for one in &given {
        let Some(address) = Address::of(one.address) else { continue };
        let path = one.planned.path.as_str();
        let place = match one.network.or(one.subnet) {
            Some(Value::Str(id)) => id.clone(),
            // The same name may mean another network in another stack.
            Some(Value::Unknown(unknown)) if !path.contains('/') => unknown.place().to_owned(),
            _ => continue,
        };
        if let Some(other) = seen.insert((place, address), path) {
            let message = format!("{other} and {path} would both have the address {}", one.address);
            found.push(Finding::fail(message, vec![other.to_owned(), path.to_owned()]));
        }
    }
    for one in &given {
        found.extend(in_range(flight, one).await);
        found.extend(unused(flight, one).await);
    }
    (!given.is_empty()).then_some(found)
}

fn given<'a>(planned: &'a Planned<'a>, made: &'a Map) -> Vec<Given<'a>> {
    let list = |name: &str| made.get(name).and_then(Value::as_list).unwrap_or_default();
    match planned.kind {
        "OS::Neutron::Port" => {
            let of = |one: &'a Value| {
                let address = one.str_at("ip_address")?;
                Some(Given { planned, address, network: made.get("network"), subnet: one.get("subnet") })
            };
            list("fixed_ips").iter().filter_map(of).collect()
        }
        "OS::Nova::Server" => {
            let of = |one: &'a Value| {
                let address = one.str_at("fixed_ip")?;
                Some(Given { planned, address, network: one.get("network"), subnet: one.get("subnet") })
            };
            list("networks").iter().filter_map(of).collect()
        }
        "OS::Neutron::FloatingIP" => {
            let address = made.get("floating_ip_address").and_then(Value::as_str);
            let network = made.get("floating_network");
            address.map(|address| Given { planned, address, network, subnet: None }).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// In the range of its subnet, or of any of its network.
async fn in_range(flight: &Flight<'_>, given: &Given<'_>) -> Option<Finding> {
    let path = given.planned.path.clone();
    let (address, text) = (Address::of(given.address)?, given.address);
    let outside =
        |range: &str| Some(Finding::fail(format!("{path}: the address {text} is not in {range}"), vec![path.clone()]));
    if let Some(subnet) = given.subnet.filter(|subnet| **subnet != Value::Null) {
        let cidr = if let Some(planned) = flight.work.referred(given.planned, subnet, "OS::Neutron::Subnet") {
            planned.text("cidr")?.to_owned()
        } else {
            let subnet = flight.cloud.part("network", &format!("/v2.0/subnets/{}", subnet.as_str()?), "subnet").await;
            subnet.ok()?.str_at("cidr")?.to_owned()
        };
        return if Range::of_cidr(&cidr)?.has(address) { None } else { outside(&cidr) };
    }
    let network = given.network?.as_str()?;
    let subnets = flight.cloud.list("network", "/v2.0/subnets", &[("network_id", network)], "subnets").await.ok()?;
    let ranges: Vec<&str> = subnets.iter().filter_map(|one| one.str_at("cidr")).collect();
    // Subnets that the caller cannot see may have it, and those of the plan.
    let has = |cidr: &&str| Range::of_cidr(cidr).is_none_or(|range| range.has(address));
    if ranges.is_empty() || flight.work.may_add_subnet(network) || ranges.iter().any(has) {
        None
    } else {
        outside(&ranges.join(", "))
    }
}

/// Used by no port but those of this tree, which may give it back.
async fn unused(flight: &Flight<'_>, given: &Given<'_>) -> Option<Finding> {
    let (path, text) = (given.planned.path.clone(), given.address);
    if given.planned.kind == "OS::Neutron::FloatingIP" {
        let query = [("floating_ip_address", text)];
        let list = flight.cloud.list("network", "/v2.0/floatingips", &query, "floatingips").await.ok()?;
        let id = list.first()?.str_at("id")?;
        let is_own = flight.work.objects.contains(id);
        return (!is_own).then(|| Finding::fail(format!("{path}: the address {text} is used by {id}"), vec![path]));
    }
    let (address, network) = (Address::of(text)?, given.network?.as_str()?);
    let ports = flight.cloud.list("network", "/v2.0/ports", &[("network_id", network)], "ports").await.ok()?;
    let port = ports.iter().find(|port| {
        let own = |key: &str| port.str_at(key).is_some_and(|id| flight.work.objects.contains(id));
        let fixed = port.get("fixed_ips").and_then(Value::as_list).unwrap_or_default();
        let has = |one: &Value| one.str_at("ip_address").and_then(Address::of) == Some(address);
        fixed.iter().any(has) && !own("id") && !own("device_id")
    })?;
    let id = port.str_at("id")?;
    Some(Finding::fail(format!("{path}: the address {text} is used by the port {id}"), vec![path]))
}
