//! Routers and their interfaces.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::attributes::{Attribute, Kind, Noun, Post};
use super::{body, create_all, list, networks, object, owned, ports, quotas, refusal, stamp_new, subnets, touch};
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::{ServiceCall, python};
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

pub(super) const ROUTER: Noun = Noun {
    one: "router",
    many: "routers",
    attributes: &[
        Attribute::new("name", Kind::Text(255), Post::Empty),
        Attribute::new("admin_state_up", Kind::Bool, Post::True),
        Attribute::own("status"),
        Attribute::new("external_gateway_info", Kind::Any, Post::Null),
        Attribute::new("description", Kind::Text(255), Post::Empty),
        Attribute::own("availability_zones"),
        Attribute::fixed("availability_zone_hints", Kind::Any, Post::List),
        Attribute::new("routes", Kind::Objects(&["nexthop", "destination"]), Post::List),
        Attribute::fixed("flavor_id", Kind::UuidOrNull, Post::Null),
        Attribute::own("conntrack_helpers"),
        Attribute::new("distributed", Kind::Bool, Post::False).admin(),
        Attribute::new("ha", Kind::Bool, Post::False).admin(),
    ],
};

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            let sees = |row: &Row| caller.owns(row.text("project_id"));
            list::answer(world, request, &ROUTER, &world.neutron.routers, sees, |_, row| show(caller, row))
        }
        ("GET", [id]) => {
            let row = visible(world, caller, id)?;
            Ok(Reply::ok(json!({"router": list::pick(request, show(caller, row))})))
        }
        ("POST", []) => create_all(world, request, &ROUTER, |world, body| create(world, caller, body)),
        ("PUT", [id]) => {
            let body = object(body(request, &ROUTER)?);
            owned(caller, visible(world, caller, id)?, "update_router")?;
            update(world, caller, id, &body)?;
            Ok(Reply::ok(json!({"router": show(caller, visible(world, caller, id)?)})))
        }
        ("DELETE", [id]) => {
            visible(world, caller, id)?;
            let attached: Vec<String> = interfaces(world, id).map(|row| row.text("id").to_owned()).collect();
            if !attached.is_empty() {
                let message = format!("Router {id} has ports still attached: {}", attached.join(", "));
                return Err(refusal(409, "RouterInUse", message));
            }
            clear_gateway(world, id)?;
            world.neutron.routers.remove(id);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_method()),
    }
}

fn show(caller: &Caller, row: &Row) -> Row {
    let mut row = public(row);
    if !caller.admin {
        row.retain(|name, _| !matches!(name.as_str(), "ha" | "distributed"));
    }
    row
}

fn visible<'a>(world: &'a CloudState, caller: &Caller, id: &str) -> Result<&'a Row, Refusal> {
    let row = world.neutron.routers.get(id).filter(|row| caller.owns(row.text("project_id")));
    row.ok_or_else(|| refusal(404, "RouterNotFound", format!("Router {id} could not be found")))
}

/// The ports of a router in subnets.
fn interfaces<'a>(world: &'a CloudState, id: &str) -> impl Iterator<Item = &'a Row> {
    world.neutron.ports.by("device_id", id).filter(|row| row.text("device_owner") == "network:router_interface")
}

/// The router from a subnet to an external network.
pub(super) fn leading_out(world: &CloudState, subnet: &str, external: &str) -> Option<String> {
    let inside =
        world.neutron.ports.by("_subnets", subnet).filter(|row| row.text("device_owner") == "network:router_interface");
    inside.map(|row| row.text("device_id")).find_map(|id| {
        let router = world.neutron.routers.get(id)?;
        let gateway = router.get("external_gateway_info")?.get("network_id")?.as_str()?;
        (gateway == external).then(|| id.to_owned())
    })
}

pub(super) fn create(world: &mut CloudState, caller: &Caller, body: &Row) -> Result<Row, Refusal> {
    let mut row = ROUTER.creation(body, caller)?;
    let project = row.text("project_id").to_owned();
    let gateway = row.insert("external_gateway_info".to_owned(), Value::Null);
    let gateway = gateway.and_then(|info| info.as_object().cloned()).filter(|info| !info.is_empty());
    if let Some(info) = &gateway {
        check_gateway(world, caller, info, "create_router")?;
    }
    quotas::check(world, &project, "router", 1)?;
    row.put("status", "ACTIVE");
    row.put("availability_zones", json!([]));
    row.put("conntrack_helpers", json!([]));
    let id = stamp_new(world, &mut row);
    world.neutron.routers.insert(row);
    if let Some(info) = &gateway
        && let Err(refusal) = set_gateway(world, &id, info)
    {
        world.neutron.routers.remove(&id);
        return Err(refusal);
    }
    Ok(show(caller, visible(world, caller, &id)?))
}

fn check_gateway(world: &CloudState, caller: &Caller, info: &Row, rule: &str) -> Result<(), Refusal> {
    let network = info.text("network_id");
    if network.is_empty() {
        let message = "Invalid input for external_gateway_info. Reason: Validation of dictionary's keys failed. Expected \
                       keys: {'network_id'} Provided keys: set().";
        return Err(refusal(400, "HTTPBadRequest", message));
    }
    if !caller.admin && info.get("enable_snat").is_some_and(Value::is_boolean) {
        let message = format!(
            "(rule:{rule} and (rule:{rule}:external_gateway_info and (rule:{rule}:external_gateway_info:network_id and \
             rule:{rule}:external_gateway_info:enable_snat))) is disallowed by policy"
        );
        return Err(refusal(403, "PolicyNotAuthorized", message));
    }
    if !networks::visible(world, caller, network)?.flag("router:external") {
        let message = format!("Bad router request: Network {network} is not an external network.");
        return Err(refusal(400, "BadRequest", message));
    }
    Ok(())
}

/// Connects a router to an external network, after [`check_gateway`].
fn set_gateway(world: &mut CloudState, id: &str, info: &Row) -> Result<(), Refusal> {
    let network = info.text("network_id").to_owned();
    let old =
        world.neutron.routers.get(id).and_then(|row| row.get("external_gateway_info")?.get("network_id").cloned());
    if old == Some(Value::from(network.as_str())) && !info.contains_key("external_fixed_ips") {
        return Ok(());
    }
    clear_gateway(world, id)?;
    let mut body = Row::new();
    body.put("network_id", network.clone());
    body.put("device_id", id);
    body.put("device_owner", "network:router_gateway");
    body.put("project_id", "");
    if let Some(ips) = info.get("external_fixed_ips") {
        body.put("fixed_ips", ips.clone());
    }
    let port = ports::create(world, &service_caller(), &body)?;
    let ips: Vec<Value> = world.neutron.ports.get(&port).map(|row| row.list("fixed_ips").to_vec()).unwrap_or_default();
    let snat = info.get("enable_snat").and_then(Value::as_bool).unwrap_or(true);
    let now = world.stamp();
    world.neutron.routers.edit(id, |row| {
        let shown = json!({"network_id": network, "external_fixed_ips": ips, "enable_snat": snat});
        row.put("external_gateway_info", shown);
        row.put("_gateway_port", port);
        touch(row, now);
    });
    Ok(())
}

fn clear_gateway(world: &mut CloudState, id: &str) -> Result<(), Refusal> {
    let Some(row) = world.neutron.routers.get(id) else { return Ok(()) };
    let port = row.text("_gateway_port").to_owned();
    if port.is_empty() {
        return Ok(());
    }
    if world.neutron.floating_ips.by("router_id", id).next().is_some() {
        let network =
            row.get("external_gateway_info").and_then(|info| info.get("network_id")?.as_str()).unwrap_or_default();
        let message = format!(
            "Gateway cannot be updated for router {id}, since a gateway to external network {network} is required by one \
             or more floating IPs."
        );
        return Err(refusal(409, "RouterExternalGatewayInUseByFloatingIp", message));
    }
    ports::delete_port(world, &port);
    world.neutron.routers.edit(id, |row| {
        row.put("external_gateway_info", Value::Null);
        row.remove("_gateway_port");
    });
    Ok(())
}

/// A caller for the network service itself, without restrictions.
pub(super) fn service_caller() -> Caller {
    Caller::service("")
}

fn update(world: &mut CloudState, caller: &Caller, id: &str, body: &Row) -> Result<(), Refusal> {
    let mut change = ROUTER.change(body, caller)?;
    if let Some(routes) = change.get("routes") {
        check_routes(world, id, routes)?;
    }
    match change.remove("external_gateway_info") {
        Some(Value::Object(info)) if !info.is_empty() => {
            check_gateway(world, caller, &info, "update_router")?;
            set_gateway(world, id, &info)?;
        }
        Some(_) => clear_gateway(world, id)?,
        None => {}
    }
    let now = world.stamp();
    world.neutron.routers.edit(id, |row| {
        row.extend(change);
        touch(row, now);
    });
    Ok(())
}

pub(super) fn check_routes(world: &CloudState, id: &str, routes: &Value) -> Result<(), Refusal> {
    let nets: Vec<IpNet> = world
        .neutron
        .ports
        .by("device_id", id)
        .flat_map(|port| port.texts("_subnets"))
        .filter_map(|subnet| world.neutron.subnets.get(&subnet)?.text("cidr").parse().ok())
        .collect();
    for route in routes.as_array().into_iter().flatten() {
        let hop = route.get("nexthop").and_then(Value::as_str).and_then(|hop| hop.parse::<IpAddr>().ok());
        if !hop.is_some_and(|hop| nets.iter().any(|net| net.contains(&hop))) {
            let message =
                format!("Invalid format for routes: {}, the nexthop is not connected with router", python(routes));
            return Err(refusal(400, "InvalidRoutes", message));
        }
    }
    Ok(())
}

/// `PUT /routers/{id}/add_router_interface` and `…/remove_router_interface`.
pub(super) fn interface(
    world: &mut CloudState,
    request: &ServiceCall,
    caller: &Caller,
    id: &str,
    action: &str,
) -> Outcome {
    if request.method != "PUT" {
        return Err(Refusal::no_method());
    }
    let body = object(request.json("Body contains invalid data")?);
    visible(world, caller, id)?;
    let (subnet, port) = (body.text("subnet_id"), body.text("port_id"));
    if subnet.is_empty() && port.is_empty() {
        return Err(bad("Either subnet_id or port_id must be specified."));
    }
    let port = if action == "add_router_interface" {
        if !subnet.is_empty() && !port.is_empty() {
            return Err(bad("Cannot specify both subnet-id and port-id."));
        }
        if port.is_empty() { add_subnet(world, caller, id, subnet)? } else { add_port(world, caller, id, port)? }
    } else {
        remove(world, caller, id, subnet, port)?
    };
    let subnets = port.texts("_subnets");
    let project = visible(world, caller, id)?.text("project_id").to_owned();
    Ok(Reply::ok(json!({
        "id": id, "tenant_id": project, "port_id": port.text("id"), "network_id": port.text("network_id"),
        "subnet_id": subnets.first(), "subnet_ids": subnets, "project_id": project, "tags": [],
    })))
}

fn bad(reason: &str) -> Refusal {
    refusal(400, "BadRequest", format!("Bad router request: {reason}"))
}

/// Rejects a subnet that is already connected to the router or overlaps with a connected one.
fn check_overlap(world: &CloudState, router: &str, subnet: &str) -> Result<(), Refusal> {
    let net = |id: &str| world.neutron.subnets.get(id).and_then(|row| row.text("cidr").parse::<IpNet>().ok());
    let Some(own) = net(subnet) else { return Ok(()) };
    for other in world.neutron.ports.by("device_id", router).flat_map(|port| port.texts("_subnets")) {
        if other == subnet {
            return Err(bad(&format!("Router already has a port on subnet {subnet}.")));
        }
        if let Some(net) = net(&other).filter(|net| net.contains(&own) || own.contains(net)) {
            return Err(bad(&format!("Cidr {own} of subnet {subnet} overlaps with cidr {net} of subnet {other}.")));
        }
    }
    Ok(())
}

pub(super) fn add_subnet(world: &mut CloudState, caller: &Caller, router: &str, subnet: &str) -> Result<Row, Refusal> {
    let row = subnets::visible(world, caller, subnet)?.clone();
    if row.text("gateway_ip").is_empty() {
        return Err(bad("Subnet for router interface must have a gateway IP."));
    }
    check_overlap(world, router, subnet)?;
    let project = visible(world, caller, router)?.text("project_id").to_owned();
    let mut body = Row::new();
    body.put("network_id", row.text("network_id"));
    body.put("fixed_ips", json!([{"subnet_id": subnet, "ip_address": row.text("gateway_ip")}]));
    body.put("device_id", router);
    body.put("device_owner", "network:router_interface");
    body.put("project_id", project);
    body.put("port_security_enabled", false);
    let port = ports::create(world, &service_caller(), &body)?;
    world.neutron.ports.get(&port).cloned().ok_or_else(|| ports::missing(&port))
}

fn add_port(world: &mut CloudState, caller: &Caller, router: &str, port: &str) -> Result<Row, Refusal> {
    let row = ports::visible(world, caller, port)?.clone();
    if !row.text("device_id").is_empty() {
        let message = format!(
            "Unable to complete operation on port {port} for network {}. Port already has an attached device {}.",
            row.text("network_id"),
            row.text("device_id")
        );
        return Err(refusal(409, "PortInUse", message));
    }
    let subnets = row.texts("_subnets");
    if subnets.is_empty() {
        return Err(bad("Port must have at least one fixed IP."));
    }
    for subnet in &subnets {
        check_overlap(world, router, subnet)?;
    }
    world.neutron.ports.edit(port, |row| {
        row.put("device_id", router);
        row.put("device_owner", "network:router_interface");
        row.put("status", "ACTIVE");
    });
    world.neutron.ports.get(port).cloned().ok_or_else(|| ports::missing(port))
}

fn remove(world: &mut CloudState, caller: &Caller, router: &str, subnet: &str, port: &str) -> Result<Row, Refusal> {
    let found = if port.is_empty() {
        subnets::visible(world, caller, subnet)?;
        interfaces(world, router).find(|row| row.texts("_subnets").iter().any(|id| id == subnet)).cloned().ok_or_else(
            || {
                let message = format!("Router {router} has no interface on subnet {subnet}");
                refusal(404, "RouterInterfaceNotFoundForSubnet", message)
            },
        )?
    } else {
        interfaces(world, router).find(|row| row.text("id") == port).cloned().ok_or_else(|| {
            let message = format!("Router {router} does not have an interface with id {port}");
            refusal(404, "RouterInterfaceNotFound", message)
        })?
    };
    let subnets = found.texts("_subnets");
    if !subnet.is_empty() && !subnets.iter().any(|id| id == subnet) {
        let message = format!("Subnet on port {port} does not match the requested subnet {subnet}.");
        return Err(refusal(409, "SubnetMismatchForPort", message));
    }
    let needed = world.neutron.floating_ips.by("router_id", router).any(|floating| {
        let port = world.neutron.ports.get(floating.text("port_id"));
        let inside = port.map(ports::ips_of).unwrap_or_default();
        inside.iter().any(|(id, ip)| subnets.contains(id) && ip.to_string() == floating.text("fixed_ip_address"))
    });
    if needed {
        let message = format!(
            "Router interface for subnet {} on router {router} cannot be deleted, as it is required by one or more \
             floating IPs.",
            subnets.first().map_or("", String::as_str)
        );
        return Err(refusal(409, "RouterInterfaceInUseByFloatingIP", message));
    }
    ports::delete_port(world, found.text("id"));
    Ok(found)
}
