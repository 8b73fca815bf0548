//! Subnets.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::addresses::{Pool, address, is_host, number};
use super::attributes::{Attribute, Kind, Noun, Post, integer};
use super::{bad_input, body, create_all, list, networks, object, owned, quotas, refusal, stamp_new, touch};
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::{ServiceCall, python};
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

const MODES: &[&str] = &["dhcpv6-stateful", "dhcpv6-stateless", "slaac"];

pub(super) const SUBNET: Noun = Noun {
    one: "subnet",
    many: "subnets",
    attributes: &[
        Attribute::fixed("ip_version", Kind::Number(&[4, 6]), Post::Required),
        Attribute::fixed("network_id", Kind::Uuid, Post::Required),
        Attribute::new("name", Kind::Text(255), Post::Empty),
        Attribute::fixed("subnetpool_id", Kind::Any, Post::Null),
        Attribute::fixed("prefixlen", Kind::Int(0, 128), Post::Unset),
        Attribute::new("enable_dhcp", Kind::Bool, Post::True),
        Attribute::fixed("ipv6_ra_mode", Kind::OneOf(MODES), Post::Null),
        Attribute::fixed("ipv6_address_mode", Kind::OneOf(MODES), Post::Null),
        Attribute::new("gateway_ip", Kind::AddressOrNull, Post::Unset),
        Attribute::fixed("cidr", Kind::TextOrNull(64), Post::Unset),
        Attribute::new("allocation_pools", Kind::Objects(&["end", "start"]), Post::Unset),
        Attribute::new("host_routes", Kind::Objects(&["nexthop", "destination"]), Post::List),
        Attribute::new("dns_nameservers", Kind::Addresses, Post::List),
        Attribute::new("description", Kind::Text(255), Post::Empty),
        Attribute::new("service_types", Kind::Any, Post::List).admin(),
        Attribute::new("segment_id", Kind::Any, Post::Unset).admin(),
        Attribute::new("dns_publish_fixed_ip", Kind::Bool, Post::Unset),
    ],
};

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            let subnets = &world.neutron.subnets;
            list::answer(world, request, &SUBNET, subnets, |row| sees(world, caller, row), |_, row| public(row))
        }
        ("GET", [id]) => {
            let row = visible(world, caller, id)?;
            Ok(Reply::ok(json!({"subnet": list::pick(request, public(row))})))
        }
        ("POST", []) => create_all(world, request, &SUBNET, |world, body| create(world, caller, body)),
        ("PUT", [id]) => {
            let body = object(body(request, &SUBNET)?);
            owned(caller, visible(world, caller, id)?, "update_subnet")?;
            update(world, caller, id, &body)
        }
        ("DELETE", [id]) => {
            owned(caller, visible(world, caller, id)?, "delete_subnet")?;
            if world.neutron.pools.get(*id).is_some_and(|pool| pool.in_use() > 0) {
                let message = format!(
                    "Unable to complete operation on subnet {id}: One or more ports have an IP allocation from this subnet."
                );
                return Err(refusal(409, "SubnetInUse", message));
            }
            remove(world, id);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_method()),
    }
}

fn sees(world: &CloudState, caller: &Caller, row: &Row) -> bool {
    caller.owns(row.text("project_id"))
        || world.neutron.networks.get(row.text("network_id")).is_some_and(|network| network.flag("shared"))
}

pub(super) fn missing(id: &str) -> Refusal {
    refusal(404, "SubnetNotFound", format!("Subnet {id} could not be found."))
}

/// The subnet, if the caller can see it.
pub(super) fn visible<'a>(world: &'a CloudState, caller: &Caller, id: &str) -> Result<&'a Row, Refusal> {
    world.neutron.subnets.get(id).filter(|row| sees(world, caller, row)).ok_or_else(|| missing(id))
}

pub(super) fn create(world: &mut CloudState, caller: &Caller, body: &Row) -> Result<Row, Refusal> {
    let mut row = SUBNET.creation(body, caller)?;
    let network_id = row.text("network_id").to_owned();
    let network = networks::visible(world, caller, &network_id)?;
    if !caller.owns(network.text("project_id")) {
        let message = format!("Tenant {} not allowed to create subnet on this network", row.text("project_id"));
        return Err(refusal(403, "HTTPForbidden", message));
    }
    let cidr = row.text("cidr").to_owned();
    if cidr.is_empty() {
        let message = "Bad subnets request: a subnetpool must be specified in the absence of a cidr.";
        return Err(refusal(400, "BadRequest", message));
    }
    let net = network_of(&cidr, row.int("ip_version"))?;
    if row.flag("enable_dhcp") && number(net.network()) == 0 {
        let message = format!("First IP '{}' of network is not supported if enable_dhcp is True.", net.network());
        return Err(bad_input(&message));
    }
    let overlap = world.neutron.subnets.by("network_id", &network_id).find(|other| {
        other.text("cidr").parse::<IpNet>().is_ok_and(|other| other.contains(&net) || net.contains(&other))
    });
    if overlap.is_some() {
        return Err(bad_input(&format!(
            "Requested subnet with cidr: {net} for network: {network_id} overlaps with another subnet"
        )));
    }
    let gateway = gateway(&row, net)?;
    let ranges = ranges(&row, net, gateway)?;
    check_routes(&row, net)?;
    let project = row.text("project_id").to_owned();
    quotas::check(world, &project, "subnet", 1)?;

    row.put("cidr", net.to_string());
    row.put("gateway_ip", gateway.map(|gateway| gateway.to_string()));
    row.put("allocation_pools", pools(&ranges, net));
    row.remove("prefixlen");
    let id = stamp_new(world, &mut row);
    let now = world.stamp();
    world.neutron.pools.insert(id.clone(), Pool::new(net, ranges));
    world.neutron.networks.edit(&network_id, |network| {
        network.push("subnets", id.clone());
        touch(network, now);
    });
    let seen = public(&row);
    world.neutron.subnets.insert(row);
    Ok(seen)
}

fn network_of(cidr: &str, version: i64) -> Result<IpNet, Refusal> {
    let whole =
        if cidr.contains('/') { cidr.to_owned() } else { format!("{cidr}/{}", if version == 4 { 32 } else { 128 }) };
    let net: IpNet = whole.parse().map_err(|_| bad_input(&format!("{cidr} is not in a CIDR format")))?;
    if version != if net.addr().is_ipv4() { 4 } else { 6 } {
        return Err(bad_input(&format!("cidr '{cidr}' does not match the ip_version '{version}'")));
    }
    Ok(net.trunc())
}

/// The gateway in a body, by default the first address of the network; `None` if it is null.
fn gateway(row: &Row, net: IpNet) -> Result<Option<IpAddr>, Refusal> {
    match row.get("gateway_ip") {
        Some(Value::Null) => Ok(None),
        Some(value) => {
            let gateway = value.as_str().and_then(|text| text.parse::<IpAddr>().ok());
            let gateway = gateway.ok_or_else(|| bad_input("Gateway is not valid on subnet"))?;
            let inside = net.contains(&gateway) || (net.addr().is_ipv6() && is_link_local(gateway));
            if gateway.is_ipv4() != net.addr().is_ipv4()
                || !inside
                || (net.contains(&gateway) && !is_host(net, gateway))
            {
                return Err(bad_input("Gateway is not valid on subnet"));
            }
            Ok(Some(gateway))
        }
        None => Ok(net.hosts().next()),
    }
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if (address.segments()[0] & 0xffc0) == 0xfe80)
}

/// The allocation pools in a body, by default all host addresses except the gateway.
fn ranges(row: &Row, net: IpNet, gateway: Option<IpAddr>) -> Result<Vec<(u128, u128)>, Refusal> {
    let Some(wanted) = row.get("allocation_pools").and_then(Value::as_array).filter(|pools| !pools.is_empty()) else {
        return Ok(all_but(net, gateway));
    };
    let mut ranges: Vec<(u128, u128)> = Vec::new();
    for pool in wanted {
        let end = |name: &str| pool.get(name).and_then(Value::as_str).unwrap_or_default();
        let (start, end) = (end("start"), end("end"));
        let invalid = || {
            let message = format!("The allocation pool {} is not valid.", python(pool));
            refusal(400, "InvalidAllocationPool", message)
        };
        let first: IpAddr = start.parse().map_err(|_| invalid())?;
        let last: IpAddr = end.parse().map_err(|_| invalid())?;
        if first.is_ipv4() != net.addr().is_ipv4() || last.is_ipv4() != first.is_ipv4() || last < first {
            return Err(invalid());
        }
        if !net.contains(&first) || !net.contains(&last) {
            let message = format!("The allocation pool {first}-{last} spans beyond the subnet cidr {net}.");
            return Err(refusal(400, "OutOfBoundsAllocationPool", message));
        }
        ranges.push((number(first), number(last)));
    }
    for (at, one) in ranges.iter().enumerate() {
        if let Some(other) = ranges[..at].iter().find(|other| one.0 <= other.1 && other.0 <= one.1) {
            let text = |range: &(u128, u128)| format!("{}-{}", address(range.0, net), address(range.1, net));
            let message =
                format!("Found overlapping allocation pools: {} {} for subnet {net}.", text(other), text(one));
            return Err(refusal(409, "OverlappingAllocationPools", message));
        }
    }
    if let Some(gateway) = gateway {
        check_gateway(gateway, &ranges, net)?;
    }
    Ok(ranges)
}

fn check_gateway(gateway: IpAddr, ranges: &[(u128, u128)], net: IpNet) -> Result<(), Refusal> {
    let at = number(gateway);
    ranges.iter().find(|(start, end)| *start <= at && at <= *end).map_or(Ok(()), |(start, end)| {
        let message = format!(
            "Gateway ip {gateway} conflicts with allocation pool {}-{}.",
            address(*start, net),
            address(*end, net)
        );
        Err(refusal(409, "GatewayConflictWithAllocationPools", message))
    })
}

fn all_but(net: IpNet, gateway: Option<IpAddr>) -> Vec<(u128, u128)> {
    let (first, last) = (number(net.network()), number(net.broadcast()));
    let (start, end) = match (last - first, net) {
        (0 | 1, _) => (first, last),
        (_, IpNet::V4(_)) => (first + 1, last - 1),
        (_, IpNet::V6(_)) => (first + 1, last),
    };
    match gateway.map(number).filter(|gateway| start <= *gateway && *gateway <= end) {
        Some(gateway) => [(start, gateway.saturating_sub(1)), (gateway.saturating_add(1), end)]
            .into_iter()
            .filter(|(start, end)| start <= end)
            .collect(),
        None => vec![(start, end)],
    }
}

fn pools(ranges: &[(u128, u128)], net: IpNet) -> Value {
    let pool = |(start, end): &(u128, u128)| json!({"start": address(*start, net).to_string(), "end": address(*end, net).to_string()});
    ranges.iter().map(pool).collect()
}

fn check_routes(row: &Row, net: IpNet) -> Result<(), Refusal> {
    for route in row.list("host_routes") {
        let field = |name: &str| route.get(name).and_then(Value::as_str).unwrap_or_default();
        let invalid = |reason: String| {
            let message = format!("Invalid input for host_routes. Reason: {reason}");
            Err(refusal(400, "HTTPBadRequest", message))
        };
        if field("destination").parse::<IpNet>().is_err() {
            return invalid(format!("'{}' is not a valid IP subnet.", field("destination")));
        }
        let Ok(hop) = field("nexthop").parse::<IpAddr>() else {
            return invalid(format!("'{}' is not a valid IP address.", field("nexthop")));
        };
        if hop.is_ipv4() != net.addr().is_ipv4() {
            return Err(bad_input(&format!("nexthop {hop} is not of the subnet's IP version")));
        }
    }
    Ok(())
}

fn update(world: &mut CloudState, caller: &Caller, id: &str, body: &Row) -> Outcome {
    let mut change = SUBNET.change(body, caller)?;
    let old = visible(world, caller, id)?.clone();
    let net = network_of(old.text("cidr"), old.get("ip_version").and_then(integer).unwrap_or(4))?;
    let mut merged = old.clone();
    merged.extend(change.clone());
    if change.contains_key("gateway_ip") {
        gateway(&merged, net)?;
    }
    let gateway = merged.text("gateway_ip").parse::<IpAddr>().ok();
    if change.contains_key("allocation_pools") || change.contains_key("gateway_ip") {
        let ranges = ranges(&merged, net, gateway)?;
        change.put("allocation_pools", pools(&ranges, net));
        if let Some(pool) = world.neutron.pools.get_mut(id) {
            pool.ranges = ranges;
        }
    }
    check_routes(&merged, net)?;
    let now = world.stamp();
    world.neutron.subnets.edit(id, |row| {
        row.extend(change);
        touch(row, now);
    });
    Ok(Reply::ok(json!({"subnet": public(visible(world, caller, id)?)})))
}

/// Deletes a subnet, even if it is in use.
pub(super) fn remove(world: &mut CloudState, id: &str) {
    if let Some(row) = world.neutron.subnets.remove(id) {
        world.neutron.networks.edit(row.text("network_id"), |network| network.drop_from("subnets", |item| *item == id));
    }
    world.neutron.pools.remove(id);
}
