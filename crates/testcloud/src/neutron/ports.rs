//! Ports.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::attributes::{Attribute, Kind, Noun, Post};
use super::{bad_input, body, create_all, list, networks, object, owned, quotas, refusal, stamp_new, subnets, touch};
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

pub(super) const PORT: Noun = Noun {
    one: "port",
    many: "ports",
    attributes: &[
        Attribute::fixed("network_id", Kind::Uuid, Post::Required),
        Attribute::new("name", Kind::Text(255), Post::Empty),
        Attribute::new("mac_address", Kind::Mac, Post::Unset),
        Attribute::new("admin_state_up", Kind::Bool, Post::True),
        Attribute::own("status"),
        Attribute::new("device_id", Kind::Text(255), Post::Empty),
        Attribute::new("device_owner", Kind::Text(255), Post::Empty),
        Attribute::new("fixed_ips", Kind::Any, Post::Unset),
        Attribute::new("allowed_address_pairs", Kind::Any, Post::List),
        Attribute::new("extra_dhcp_opts", Kind::Any, Post::List),
        Attribute::new("security_groups", Kind::UuidList, Post::Unset),
        Attribute::new("description", Kind::Text(255), Post::Empty),
        Attribute::new("binding:vnic_type", Kind::OneOf(VNIC_TYPES), Post::Text("normal")),
        Attribute::new("binding:profile", Kind::Any, Post::Unset).admin(),
        Attribute::new("binding:host_id", Kind::TextOrNull(255), Post::Empty).admin(),
        Attribute::own("binding:vif_type"),
        Attribute::own("binding:vif_details"),
        Attribute::new("port_security_enabled", Kind::Bool, Post::Unset),
        Attribute::new("qos_policy_id", Kind::UuidOrNull, Post::Null),
        Attribute::own("qos_network_policy_id"),
        Attribute::new("dns_name", Kind::Text(255), Post::Empty),
        Attribute::own("dns_assignment"),
        Attribute::new("dns_domain", Kind::TextOrNull(255), Post::Empty),
        Attribute::own("data_plane_status"),
        Attribute::fixed("propagate_uplink_status", Kind::Bool, Post::True),
        Attribute::new("numa_affinity_policy", Kind::Any, Post::Unset),
        Attribute::own("ip_allocation"),
    ],
};

const VNIC_TYPES: &[&str] = &[
    "normal",
    "direct",
    "macvtap",
    "baremetal",
    "direct-physical",
    "virtio-forwarder",
    "smart-nic",
    "vdpa",
    "accelerator-direct",
    "accelerator-direct-physical",
    "remote-managed",
];

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            let sees = |row: &Row| caller.owns(row.text("project_id"));
            list::answer(world, request, &PORT, &world.neutron.ports, sees, |_, row| show(caller, row))
        }
        ("GET", [id]) => {
            let row = visible(world, caller, id)?;
            Ok(Reply::ok(json!({"port": list::pick(request, show(caller, row))})))
        }
        ("POST", []) => create_all(world, request, &PORT, |world, body| {
            let id = create(world, caller, body)?;
            Ok(show(caller, visible(world, caller, &id)?))
        }),
        ("PUT", [id]) => {
            let body = object(body(request, &PORT)?);
            owned(caller, visible(world, caller, id)?, "update_port")?;
            update(world, caller, id, &body)?;
            Ok(Reply::ok(json!({"port": show(caller, visible(world, caller, id)?)})))
        }
        ("DELETE", [id]) => {
            let row = visible(world, caller, id)?;
            let owner = row.text("device_owner");
            let kept = ["network:router_interface", "network:router_gateway", "network:floatingip"];
            if kept.contains(&owner) {
                let message =
                    format!("Port {id} cannot be deleted directly via the port API: has device owner {owner}.");
                return Err(refusal(409, "ServicePortInUse", message));
            }
            delete_port(world, id);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_method()),
    }
}

pub(super) fn missing(id: &str) -> Refusal {
    refusal(404, "PortNotFound", format!("Port {id} could not be found."))
}

/// The port, if it belongs to the caller.
pub(super) fn visible<'a>(world: &'a CloudState, caller: &Caller, id: &str) -> Result<&'a Row, Refusal> {
    world.neutron.ports.get(id).filter(|row| caller.owns(row.text("project_id"))).ok_or_else(|| missing(id))
}

fn show(caller: &Caller, row: &Row) -> Row {
    let mut row = public(row);
    if !caller.admin {
        row.retain(|name, _| !name.starts_with("binding:") || name == "binding:vnic_type");
    }
    row
}

/// Creates a port from a body and returns its ID.
pub(super) fn create(world: &mut CloudState, caller: &Caller, body: &Row) -> Result<String, Refusal> {
    let mut row = PORT.creation(body, caller)?;
    let network = networks::visible(world, caller, row.text("network_id"))?;
    let secure = network.flag("port_security_enabled");
    row.entry("port_security_enabled").or_insert(Value::Bool(secure));
    super::extensions::check_policy(world, &row)?;
    check_pairs(&row)?;
    let project = row.text("project_id").to_owned();
    quotas::check(world, &project, "port", 1)?;
    let asked = row.get("security_groups").is_some_and(|groups| groups.as_array().is_some_and(|list| !list.is_empty()));
    let ours = row.text("device_owner").starts_with("network:");
    if asked && !row.flag("port_security_enabled") {
        return Err(no_security());
    }
    check_groups(world, caller, &row.texts("security_groups"))?;
    let default = super::default_group(world, &project);
    if !row.contains_key("security_groups") {
        let groups = if row.flag("port_security_enabled") && !ours { vec![default] } else { Vec::new() };
        row.put("security_groups", groups);
    }
    let address = row.text("mac_address").to_ascii_lowercase();
    let address = if address.is_empty() {
        free_mac(world)
    } else {
        let network = row.text("network_id");
        if world.neutron.ports.by("mac_address", &address).any(|other| other.text("network_id") == network) {
            let message =
                format!("Unable to complete operation for network {network}. The mac address {address} is in use.");
            return Err(refusal(409, "MacAddressInUse", message));
        }
        address
    };
    row.put("mac_address", address);
    let ips = allocate(world, row.text("network_id"), row.get("fixed_ips"), &[])?;
    set_ips(&mut row, ips);
    row.put("qos_network_policy_id", Value::Null);
    row.put("data_plane_status", Value::Null);
    row.put("ip_allocation", "immediate");
    row.entry("binding:profile").or_insert_with(|| json!({}));
    set_binding(&mut row);
    let id = stamp_new(world, &mut row);
    world.neutron.ports.insert(row);
    Ok(id)
}

fn free_mac(world: &mut CloudState) -> String {
    loop {
        let [a, b, c] = world.bytes();
        let mac = format!("fa:16:3e:{a:02x}:{b:02x}:{c:02x}");
        if world.neutron.ports.by("mac_address", &mac).next().is_none() {
            return mac;
        }
    }
}

/// Sets status and binding attributes.
fn set_binding(row: &mut Row) {
    let bound = !row.text("binding:host_id").is_empty() || row.text("device_owner").starts_with("network:");
    row.put("status", if bound && row.flag("admin_state_up") { "ACTIVE" } else { "DOWN" });
    row.put("binding:vif_type", if bound { "ovs" } else { "unbound" });
    row.put("binding:vif_details", if bound { json!({"port_filter": true}) } else { json!({}) });
}

fn set_ips(row: &mut Row, ips: Vec<(String, IpAddr)>) {
    let name = row.text("dns_name").to_owned();
    let mut assignment = Vec::new();
    let mut subnets = Vec::new();
    let mut shown = Vec::new();
    for (subnet, ip) in ips {
        let host =
            if name.is_empty() { format!("host-{}", ip.to_string().replace(['.', ':'], "-")) } else { name.clone() };
        assignment
            .push(json!({"ip_address": ip.to_string(), "hostname": host, "fqdn": format!("{host}.testcloud.test.")}));
        shown.push(json!({"subnet_id": subnet, "ip_address": ip.to_string()}));
        subnets.push(subnet);
    }
    row.put("fixed_ips", shown);
    row.put("dns_assignment", assignment);
    row.put("_subnets", subnets);
}

fn no_security() -> Refusal {
    let message = "Port security must be enabled and port must have an IP address in order to use security groups.";
    refusal(400, "PortSecurityAndIPRequiredForSecurityGroups", message)
}

fn check_pairs(row: &Row) -> Result<(), Refusal> {
    for pair in row.list("allowed_address_pairs") {
        let Some(address) = pair.get("ip_address").and_then(Value::as_str) else {
            return Err(refusal(400, "AllowedAddressPairsMissingIP", "AllowedAddressPair must contain ip_address"));
        };
        if address.parse::<IpAddr>().is_err() && address.parse::<ipnet::IpNet>().is_err() {
            let message =
                format!("Invalid input for allowed_address_pairs. Reason: '{address}' is not a valid IP subnet.");
            return Err(refusal(400, "HTTPBadRequest", message));
        }
    }
    let pairs = !row.list("allowed_address_pairs").is_empty();
    if pairs && row.get("port_security_enabled") == Some(&Value::Bool(false)) {
        let message = "Port Security must be enabled in order to have allowed address pairs on a port.";
        return Err(refusal(409, "AddressPairAndPortSecurityRequired", message));
    }
    Ok(())
}

fn check_groups(world: &CloudState, caller: &Caller, groups: &[String]) -> Result<(), Refusal> {
    let known = |id: &String| world.neutron.groups.get(id).is_some_and(|row| caller.owns(row.text("project_id")));
    groups.iter().find(|id| !known(id)).map_or(Ok(()), |id| Err(super::security_groups::missing(id)))
}

/// Allocates the addresses in `wanted`, or one for each IP version. `held` are the current addresses of the port, which
/// it may keep. Allocates nothing on failure.
fn allocate(
    world: &mut CloudState,
    network: &str,
    wanted: Option<&Value>,
    held: &[(String, IpAddr)],
) -> Result<Vec<(String, IpAddr)>, Refusal> {
    let subnets: Vec<String> =
        world.neutron.subnets.by("network_id", network).map(|row| row.text("id").to_owned()).collect();
    let mut taken = Vec::new();
    let result = match wanted.and_then(Value::as_array) {
        Some(items) => take_wanted(world, network, &subnets, items, held, &mut taken),
        None => take_any(world, network, &subnets, &mut taken),
    };
    if let Err(refusal) = result {
        for (subnet, ip) in taken.iter().filter(|pair| !held.contains(pair)) {
            release(world, subnet, *ip);
        }
        return Err(refusal);
    }
    Ok(taken)
}

fn take_wanted(
    world: &mut CloudState,
    network: &str,
    subnets: &[String],
    items: &[Value],
    held: &[(String, IpAddr)],
    taken: &mut Vec<(String, IpAddr)>,
) -> Result<(), Refusal> {
    for item in items {
        let field = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        let (subnet, ip) = (field("subnet_id"), field("ip_address"));
        if subnet.is_empty() && ip.is_empty() {
            return Err(bad_input("IP allocation requires subnet_id or ip_address"));
        }
        if !subnet.is_empty() {
            let row = world.neutron.subnets.get(subnet).ok_or_else(|| subnets::missing(subnet))?;
            if row.text("network_id") != network {
                let message = format!(
                    "Failed to create port on network {network}, because fixed_ips included invalid subnet {subnet}"
                );
                return Err(bad_input(&message));
            }
        }
        if ip.is_empty() {
            let pool = world.neutron.pools.get_mut(subnet);
            let ip = pool.and_then(super::addresses::Pool::take).ok_or_else(|| exhausted(network))?;
            taken.push((subnet.to_owned(), ip));
            continue;
        }
        let invalid = format!("Invalid input for fixed_ips. Reason: '{ip}' is not a valid IP address.");
        let ip: IpAddr = ip.parse().map_err(|_| refusal(400, "HTTPBadRequest", invalid))?;
        let pools = &world.neutron.pools;
        let home = if subnet.is_empty() {
            let holds = |id: &&String| pools.get(*id).is_some_and(|pool| pool.net.contains(&ip));
            subnets.iter().find(holds).cloned().ok_or_else(|| {
                let message =
                    format!("IP address {ip} is not a valid IP for any of the subnets on the specified network.");
                refusal(400, "InvalidIpForNetwork", message)
            })?
        } else {
            subnet.to_owned()
        };
        let pool = world.neutron.pools.get_mut(&home).ok_or_else(|| subnets::missing(&home))?;
        if !pool.admits(ip) {
            let message = format!("IP address {ip} is not a valid IP for the specified subnet.");
            return Err(refusal(400, "InvalidIpForSubnet", message));
        }
        let own = held.contains(&(home.clone(), ip));
        if !own && !pool.claim(ip) {
            let message = format!("IP address {ip} already allocated in subnet {home}");
            return Err(refusal(409, "IpAddressAlreadyAllocated", message));
        }
        taken.push((home, ip));
    }
    Ok(())
}

fn take_any(
    world: &mut CloudState,
    network: &str,
    subnets: &[String],
    taken: &mut Vec<(String, IpAddr)>,
) -> Result<(), Refusal> {
    for version in [4, 6] {
        let of_version =
            |id: &&String| world.neutron.subnets.get(id).is_some_and(|row| row.int("ip_version") == version);
        let candidates: Vec<String> = subnets.iter().filter(of_version).cloned().collect();
        if candidates.is_empty() {
            continue;
        }
        let pools = &mut world.neutron.pools;
        let found = candidates.into_iter().find_map(|id| Some((pools.get_mut(&id)?.take()?, id)));
        let (ip, id) = found.ok_or_else(|| exhausted(network))?;
        taken.push((id, ip));
    }
    Ok(())
}

fn exhausted(network: &str) -> Refusal {
    refusal(409, "IpAddressGenerationFailure", format!("No more IP addresses available on network {network}."))
}

fn release(world: &mut CloudState, subnet: &str, ip: IpAddr) {
    if let Some(pool) = world.neutron.pools.get_mut(subnet) {
        pool.free(ip);
    }
}

/// The subnets and addresses of a port.
pub(super) fn ips_of(row: &Row) -> Vec<(String, IpAddr)> {
    let pair = |ip: &Value| {
        let subnet = ip.get("subnet_id")?.as_str()?.to_owned();
        Some((subnet, ip.get("ip_address")?.as_str()?.parse().ok()?))
    };
    row.list("fixed_ips").iter().filter_map(pair).collect()
}

/// The first address of a port, version 4 before version 6.
pub(super) fn address_of(row: &Row) -> Option<IpAddr> {
    let ips = ips_of(row);
    ips.iter().find(|(_, ip)| ip.is_ipv4()).or(ips.first()).map(|(_, ip)| *ip)
}

fn update(world: &mut CloudState, caller: &Caller, id: &str, body: &Row) -> Result<(), Refusal> {
    let mut change = PORT.change(body, caller)?;
    super::extensions::check_policy(world, &change)?;
    let old = visible(world, caller, id)?.clone();
    let mut merged = old.clone();
    merged.extend(change.clone());
    check_pairs(&merged)?;
    check_groups(world, caller, &change.texts("security_groups"))?;
    if !merged.flag("port_security_enabled") && !merged.list("security_groups").is_empty() {
        return Err(no_security());
    }
    let (device, held) = (change.text("device_id"), old.text("device_id"));
    if !device.is_empty() && !held.is_empty() && device != held {
        let message = format!(
            "Unable to complete operation on port {id} for network {}. Port already has an attached device {held}.",
            old.text("network_id")
        );
        return Err(refusal(409, "PortInUse", message));
    }
    if let Some(wanted) = change.remove("fixed_ips") {
        let before = ips_of(&old);
        let after = allocate(world, old.text("network_id"), Some(&wanted), &before)?;
        for (subnet, ip) in before.iter().filter(|pair| !after.contains(pair)) {
            release(world, subnet, *ip);
        }
        set_ips(&mut merged, after);
        for field in ["fixed_ips", "dns_assignment", "_subnets"] {
            change.put(field, merged.get(field).cloned().unwrap_or_default());
        }
    }
    let now = world.stamp();
    world.neutron.ports.edit(id, |row| {
        row.extend(change);
        set_binding(row);
        touch(row, now);
    });
    Ok(())
}

/// Deletes a port and disassociates its floating IPs.
pub(crate) fn delete_port(world: &mut CloudState, id: &str) {
    let Some(row) = world.neutron.ports.remove(id) else { return };
    for (subnet, ip) in ips_of(&row) {
        release(world, &subnet, ip);
    }
    let floating: Vec<String> =
        world.neutron.floating_ips.by("port_id", id).map(|row| row.text("id").to_owned()).collect();
    for floating in floating {
        super::floating_ips::dissociate(world, &floating);
    }
}

/// Nova's requirements for a port of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) network: String,
    pub(crate) fixed_ip: Option<String>,
    pub(crate) groups: Vec<String>,
}

/// Creates a port for a server, in the project of the server.
pub(crate) fn create_for_server(
    world: &mut CloudState,
    caller: &Caller,
    server: &Row,
    wanted: &Wanted,
) -> Result<String, Refusal> {
    let mut body = Row::new();
    body.put("network_id", wanted.network.clone());
    if let Some(ip) = &wanted.fixed_ip {
        body.put("fixed_ips", json!([{"ip_address": ip}]));
    }
    let secure = world.neutron.networks.get(&wanted.network).is_some_and(|row| row.flag("port_security_enabled"));
    if secure && !wanted.groups.is_empty() {
        body.put("security_groups", wanted.groups.clone());
    }
    let id = create(world, caller, &body)?;
    bind(world, &id, server);
    Ok(id)
}

/// Binds a port to a server, which activates it.
pub(crate) fn bind(world: &mut CloudState, id: &str, server: &Row) {
    let zone = server.text("OS-EXT-AZ:availability_zone");
    let owner = format!("compute:{}", if zone.is_empty() { "nova" } else { zone });
    world.neutron.ports.edit(id, |row| {
        row.put("device_id", server.text("id"));
        row.put("device_owner", owner);
        row.put("binding:host_id", "compute1");
        set_binding(row);
    });
}

/// Unbinds a port from its server.
pub(crate) fn unbind(world: &mut CloudState, id: &str) {
    world.neutron.ports.edit(id, |row| {
        row.put("device_id", "");
        row.put("device_owner", "");
        row.put("binding:host_id", "");
        set_binding(row);
    });
}
