//! Floating IPs.

use serde_json::{Value, json};

use super::attributes::{Attribute, Kind, Noun, Post};
use super::{body, create_all, list, networks, object, ports, quotas, refusal, routers, stamp_new, touch};
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

pub(super) const FLOATING_IP: Noun = Noun {
    one: "floatingip",
    many: "floatingips",
    attributes: &[
        Attribute::fixed("floating_network_id", Kind::Uuid, Post::Required),
        Attribute::fixed("floating_ip_address", Kind::AddressOrNull, Post::Unset).admin(),
        Attribute::fixed("subnet_id", Kind::UuidOrNull, Post::Unset),
        Attribute::new("port_id", Kind::UuidOrNull, Post::Null),
        Attribute::new("fixed_ip_address", Kind::AddressOrNull, Post::Null),
        Attribute::own("router_id"),
        Attribute::own("status"),
        Attribute::own("port_details"),
        Attribute::new("description", Kind::Text(255), Post::Empty),
        Attribute::new("qos_policy_id", Kind::UuidOrNull, Post::Null),
        Attribute::fixed("dns_name", Kind::Text(255), Post::Empty),
        Attribute::fixed("dns_domain", Kind::Text(255), Post::Empty),
    ],
};

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            let sees = |row: &Row| caller.owns(row.text("project_id"));
            list::answer(world, request, &FLOATING_IP, &world.neutron.floating_ips, sees, show)
        }
        ("GET", [id]) => {
            let row = visible(world, caller, id)?;
            Ok(Reply::ok(json!({"floatingip": list::pick(request, show(world, row))})))
        }
        ("POST", []) => create_all(world, request, &FLOATING_IP, |world, body| create(world, caller, body)),
        ("PUT", [id]) => {
            let body = object(body(request, &FLOATING_IP)?);
            visible(world, caller, id)?;
            update(world, caller, id, &body)?;
            Ok(Reply::ok(json!({"floatingip": show(world, visible(world, caller, id)?)})))
        }
        ("DELETE", [id]) => {
            let port = visible(world, caller, id)?.text("_own_port").to_owned();
            world.neutron.floating_ips.remove(id);
            ports::delete_port(world, &port);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_method()),
    }
}

fn visible<'a>(world: &'a CloudState, caller: &Caller, id: &str) -> Result<&'a Row, Refusal> {
    let row = world.neutron.floating_ips.get(id).filter(|row| caller.owns(row.text("project_id")));
    row.ok_or_else(|| refusal(404, "FloatingIPNotFound", format!("Floating IP {id} could not be found")))
}

fn show(world: &CloudState, row: &Row) -> Row {
    let mut row = public(row);
    let port = world.neutron.ports.get(row.text("port_id"));
    let details = port.map(|port| {
        json!({
            "name": port.text("name"), "network_id": port.text("network_id"), "mac_address": port.text("mac_address"),
            "admin_state_up": port.flag("admin_state_up"), "status": port.text("status"),
            "device_id": port.text("device_id"), "device_owner": port.text("device_owner"),
        })
    });
    row.put("port_details", details);
    row
}

fn bad(reason: &str) -> Refusal {
    refusal(400, "BadRequest", format!("Bad floatingip request: {reason}"))
}

fn create(world: &mut CloudState, caller: &Caller, body: &Row) -> Result<Row, Refusal> {
    let mut row = FLOATING_IP.creation(body, caller)?;
    super::extensions::check_policy(world, &row)?;
    let network = row.text("floating_network_id").to_owned();
    if !networks::visible(world, caller, &network)?.flag("router:external") {
        return Err(bad(&format!("Network {network} is not a valid external network.")));
    }
    let (port, fixed) = (row.text("port_id").to_owned(), row.text("fixed_ip_address").to_owned());
    if port.is_empty() && !fixed.is_empty() {
        return Err(bad("fixed_ip_address cannot be specified without a port_id."));
    }
    if !port.is_empty() {
        // Before an address is allocated, so that a failure has no side effects.
        association(world, caller, "", "", &network, &port, &fixed)?;
    }
    let project = row.text("project_id").to_owned();
    quotas::check(world, &project, "floatingip", 1)?;
    let mut wanted = Row::new();
    for (from, to) in [("subnet_id", "subnet_id"), ("floating_ip_address", "ip_address")] {
        if let Some(value) = row.get(from).filter(|value| !value.is_null()) {
            wanted.put(to, value.clone());
        }
    }
    let mut own = Row::new();
    own.put("network_id", network.clone());
    own.put("device_owner", "network:floatingip");
    own.put("project_id", "");
    if !wanted.is_empty() {
        own.put("fixed_ips", vec![Value::Object(wanted)]);
    }
    let own = ports::create(world, &routers::service_caller(), &own)?;
    let address = world.neutron.ports.get(&own).and_then(ports::address_of).map(|ip| ip.to_string());
    let Some(address) = address.filter(|address| !address.contains(':')) else {
        ports::delete_port(world, &own);
        return Err(refusal(
            400,
            "ExternalIpAddressExhausted",
            format!("Unable to find any IP address on external network {network}."),
        ));
    };
    row.remove("subnet_id");
    row.put("floating_ip_address", address.clone());
    row.put("port_id", Value::Null);
    row.put("fixed_ip_address", Value::Null);
    row.put("router_id", Value::Null);
    row.put("status", "DOWN");
    row.put("_own_port", own.clone());
    let id = stamp_new(world, &mut row);
    world.neutron.floating_ips.insert(row);
    world.neutron.ports.edit(&own, |port| port.put("device_id", id.clone()));
    if !port.is_empty() {
        associate(world, caller, &id, &address, &network, &port, &fixed)?;
    }
    Ok(show(world, visible(world, caller, &id)?))
}

fn update(world: &mut CloudState, caller: &Caller, id: &str, body: &Row) -> Result<(), Refusal> {
    let change = FLOATING_IP.change(body, caller)?;
    let row = visible(world, caller, id)?;
    let (address, network) = (row.text("floating_ip_address").to_owned(), row.text("floating_network_id").to_owned());
    if change.contains_key("port_id") {
        let port = change.text("port_id");
        if port.is_empty() {
            dissociate(world, id);
        } else {
            associate(world, caller, id, &address, &network, port, change.text("fixed_ip_address"))?;
        }
    } else if !change.text("fixed_ip_address").is_empty() {
        return Err(bad("fixed_ip_address cannot be specified without a port_id."));
    }
    let now = world.stamp();
    world.neutron.floating_ips.edit(id, |row| {
        let rest = change.into_iter().filter(|(name, _)| !matches!(name.as_str(), "port_id" | "fixed_ip_address"));
        row.extend(rest);
        touch(row, now);
    });
    Ok(())
}

/// The fixed address and the router of an association, if it is valid.
fn association(
    world: &CloudState,
    caller: &Caller,
    id: &str,
    address: &str,
    network: &str,
    port: &str,
    fixed: &str,
) -> Result<(String, String), Refusal> {
    let row = ports::visible(world, caller, port)?;
    let ips: Vec<_> = ports::ips_of(row).into_iter().filter(|(_, ip)| ip.is_ipv4()).collect();
    let chosen = if fixed.is_empty() {
        match ips.as_slice() {
            [] => return Err(bad(&format!("Cannot add floating IP to port {port} that has no fixed IPv4 addresses."))),
            [one] => one,
            _ => {
                let reason = format!(
                    "Port {port} has multiple fixed IPv4 addresses.  Must provide a specific IPv4 address when assigning a \
                     floating IP."
                );
                return Err(bad(&reason));
            }
        }
    } else {
        let found = ips.iter().find(|(_, ip)| ip.to_string() == fixed);
        found.ok_or_else(|| bad(&format!("Port {port} does not have fixed ip {fixed}.")))?
    };
    let (subnet, ip) = chosen;
    let ip = ip.to_string();
    let router = routers::leading_out(world, subnet, network).ok_or_else(|| {
        let message = format!(
            "External network {network} is not reachable from subnet {subnet}.  Therefore, cannot associate Port {port} \
             with a Floating IP."
        );
        refusal(404, "ExternalGatewayForFloatingIPNotFound", message)
    })?;
    let taken = world.neutron.floating_ips.by("port_id", port).find(|other| {
        other.text("id") != id && other.text("fixed_ip_address") == ip && other.text("floating_network_id") == network
    });
    if let Some(taken) = taken {
        let (address, id) =
            if id.is_empty() { (taken.text("floating_ip_address"), taken.text("id")) } else { (address, id) };
        let message = format!(
            "Cannot associate floating IP {address} ({id}) with port {port} using fixed IP {ip}, as that fixed IP already \
             has a floating IP on external network {network}."
        );
        return Err(refusal(409, "FloatingIPPortAlreadyAssociated", message));
    }
    Ok((ip, router))
}

fn associate(
    world: &mut CloudState,
    caller: &Caller,
    id: &str,
    address: &str,
    network: &str,
    port: &str,
    fixed: &str,
) -> Result<(), Refusal> {
    let (fixed, router) = association(world, caller, id, address, network, port, fixed)?;
    world.neutron.floating_ips.edit(id, |row| {
        row.put("port_id", port);
        row.put("fixed_ip_address", fixed);
        row.put("router_id", router);
        row.put("status", "ACTIVE");
    });
    Ok(())
}

/// Disassociates a floating IP from its port.
pub(super) fn dissociate(world: &mut CloudState, id: &str) {
    world.neutron.floating_ips.edit(id, |row| {
        for field in ["port_id", "fixed_ip_address", "router_id"] {
            row.put(field, Value::Null);
        }
        row.put("status", "DOWN");
    });
}
