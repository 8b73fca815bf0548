//! Networks.

use serde_json::{Value, json};

use super::attributes::{Attribute, Kind, Noun, Post};
use super::{body, create_all, list, object, owned, quotas, refusal, stamp_new, touch};
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

pub(super) const NETWORK: Noun = Noun {
    one: "network",
    many: "networks",
    attributes: &[
        Attribute::new("name", Kind::Text(255), Post::Empty),
        Attribute::new("admin_state_up", Kind::Bool, Post::True),
        Attribute::new("mtu", Kind::Int(68, 9_000), Post::Number(1450)),
        Attribute::own("status"),
        Attribute::own("subnets"),
        Attribute::new("shared", Kind::Bool, Post::False).admin(),
        Attribute::fixed("availability_zone_hints", Kind::Any, Post::List),
        Attribute::own("availability_zones"),
        Attribute::own("ipv4_address_scope"),
        Attribute::own("ipv6_address_scope"),
        Attribute::new("router:external", Kind::Bool, Post::False).admin(),
        Attribute::new("description", Kind::Text(255), Post::Empty),
        Attribute::new("port_security_enabled", Kind::Bool, Post::True),
        Attribute::new("qos_policy_id", Kind::UuidOrNull, Post::Null),
        Attribute::new("dns_domain", Kind::Text(255), Post::Empty),
        Attribute::own("l2_adjacency"),
        Attribute::new("is_default", Kind::Bool, Post::Unset).admin(),
        Attribute::fixed("vlan_transparent", Kind::Any, Post::Unset),
        Attribute::new("provider:network_type", Kind::Any, Post::Unset).admin(),
        Attribute::new("provider:physical_network", Kind::Any, Post::Unset).admin(),
        Attribute::new("provider:segmentation_id", Kind::IntOrNull, Post::Unset).admin(),
        Attribute::new("segments", Kind::Any, Post::Unset).admin(),
    ],
};

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            let networks = &world.neutron.networks;
            list::answer(world, request, &NETWORK, networks, |row| sees(caller, row), |_, row| show(caller, row))
        }
        ("GET", [id]) => {
            let row = visible(world, caller, id)?;
            Ok(Reply::ok(json!({"network": list::pick(request, show(caller, row))})))
        }
        ("POST", []) => create_all(world, request, &NETWORK, |world, body| create(world, caller, body)),
        ("PUT", [id]) => {
            let body = object(body(request, &NETWORK)?);
            owned(caller, visible(world, caller, id)?, "update_network")?;
            let change = NETWORK.change(&body, caller)?;
            super::extensions::check_policy(world, &change)?;
            let now = world.stamp();
            world.neutron.networks.edit(id, |row| {
                row.extend(change);
                touch(row, now);
            });
            Ok(Reply::ok(json!({"network": show(caller, visible(world, caller, id)?)})))
        }
        ("DELETE", [id]) => {
            owned(caller, visible(world, caller, id)?, "delete_network")?;
            delete(world, id)?;
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_method()),
    }
}

/// Whether the caller can see a network: its own, shared and external ones.
pub(super) fn sees(caller: &Caller, row: &Row) -> bool {
    caller.owns(row.text("project_id")) || row.flag("shared") || row.flag("router:external")
}

pub(super) fn missing(id: &str) -> Refusal {
    refusal(404, "NetworkNotFound", format!("Network {id} could not be found."))
}

/// The network, if the caller can see it.
pub(super) fn visible<'a>(world: &'a CloudState, caller: &Caller, id: &str) -> Result<&'a Row, Refusal> {
    world.neutron.networks.get(id).filter(|row| sees(caller, row)).ok_or_else(|| missing(id))
}

fn show(caller: &Caller, row: &Row) -> Row {
    let mut row = public(row);
    if !caller.admin {
        row.retain(|name, _| !name.starts_with("provider:"));
    }
    row
}

pub(super) fn create(world: &mut CloudState, caller: &Caller, body: &Row) -> Result<Row, Refusal> {
    let mut row = NETWORK.creation(body, caller)?;
    super::extensions::check_policy(world, &row)?;
    let project = row.text("project_id").to_owned();
    quotas::check(world, &project, "network", 1)?;
    super::default_group(world, &project);
    row.put("status", "ACTIVE");
    row.put("subnets", json!([]));
    row.put("availability_zones", json!([]));
    row.put("ipv4_address_scope", Value::Null);
    row.put("ipv6_address_scope", Value::Null);
    row.put("l2_adjacency", true);
    if row.flag("router:external") {
        row.entry("is_default").or_insert(Value::Bool(false));
    } else {
        row.remove("is_default");
    }
    row.entry("provider:network_type").or_insert_with(|| "vxlan".into());
    row.entry("provider:physical_network").or_insert(Value::Null);
    let segment = i64::try_from(world.neutron.networks.len()).unwrap_or_default() + 1;
    row.entry("provider:segmentation_id").or_insert_with(|| segment.into());
    let id = stamp_new(world, &mut row);
    world.neutron.networks.insert(row);
    Ok(show(caller, visible(world, caller, &id)?))
}

fn delete(world: &mut CloudState, id: &str) -> Result<(), Refusal> {
    if world.neutron.ports.by("network_id", id).next().is_some() {
        let message = format!(
            "Unable to complete operation on network {id}. There are one or more ports still in use on the network."
        );
        return Err(refusal(409, "NetworkInUse", message));
    }
    let subnets: Vec<String> =
        world.neutron.subnets.by("network_id", id).map(|row| row.text("id").to_owned()).collect();
    for subnet in subnets {
        super::subnets::remove(world, &subnet);
    }
    world.neutron.networks.remove(id);
    Ok(())
}
