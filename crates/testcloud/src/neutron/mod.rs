//! Neutron v2.0.

mod addresses;
mod advanced;
mod attributes;
mod extensions;
mod floating_ips;
mod furnish;
mod list;
mod networks;
mod plain;
mod ports;
mod quotas;
mod routers;
mod rules;
mod security_groups;
mod subnets;
mod tags;

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use crate::keystone::{Caller, authenticate};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row, Table};

pub(crate) use self::addresses::Pool;

pub(crate) use furnish::furnish;
pub(crate) use ports::{Wanted, bind, create_for_server, delete_port, unbind};
pub(crate) use security_groups::{default_group, find_group};

use attributes::Noun;

/// The state of Neutron.
#[derive(Clone, Debug)]
pub(crate) struct Neutron {
    pub(crate) networks: Table,
    pub(crate) subnets: Table,
    pub(crate) ports: Table,
    pub(crate) routers: Table,
    pub(crate) floating_ips: Table,
    pub(crate) groups: Table,
    pub(crate) rules: Table,
    pub(crate) qos_policies: Table,
    /// Simple objects, which are stored unchanged.
    pub(crate) plain: Table,
    /// By subnet.
    pub(crate) pools: HashMap<String, Pool>,
    /// Limits that were set through the API, by project and resource.
    pub(crate) quotas: HashMap<String, BTreeMap<String, i64>>,
}

impl Neutron {
    pub(crate) fn new() -> Self {
        Neutron {
            networks: Table::new(&["name", "project_id"]),
            subnets: Table::new(&["name", "network_id", "project_id"]),
            ports: Table::new(&[
                "name",
                "network_id",
                "device_id",
                "security_groups",
                "project_id",
                "mac_address",
                "_subnets",
            ]),
            routers: Table::new(&["name", "project_id"]),
            floating_ips: Table::new(&["port_id", "project_id", "router_id", "floating_ip_address"]),
            groups: Table::new(&["name", "project_id"]),
            rules: Table::new(&["security_group_id", "remote_group_id", "project_id"]),
            qos_policies: Table::new(&["name", "project_id"]),
            plain: Table::new(&["name", "project_id", "_noun"]),
            pools: HashMap::new(),
            quotas: HashMap::new(),
        }
    }
}

pub(crate) fn serve(world: &mut CloudState, request: &ServiceCall) -> Outcome {
    if request.path.is_none() {
        let link = format!("{}/network/v2.0/", world.base);
        let version = json!({"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": link}]});
        return Ok(Reply::ok(json!({"versions": [version]})));
    }
    let caller = &authenticate(world, request)?;
    let segments = request.segments();
    if let Some(outcome) = plain::route(world, request, caller, &segments) {
        return outcome;
    }
    match segments.as_slice() {
        [] => Ok(Reply::ok(extensions::root(world))),
        ["extensions", rest @ ..] => extensions::route(request, rest),
        ["networks", rest @ ..] if rest.len() < 2 => networks::route(world, request, caller, rest),
        ["subnets", rest @ ..] if rest.len() < 2 => subnets::route(world, request, caller, rest),
        ["ports", rest @ ..] if rest.len() < 2 => ports::route(world, request, caller, rest),
        ["routers", id, action @ ("add_router_interface" | "remove_router_interface")] => {
            routers::interface(world, request, caller, id, action)
        }
        ["routers", id, action @ ("add_extraroutes" | "remove_extraroutes")] if request.method == "PUT" => {
            advanced::extra_routes(world, request, caller, id, action)
        }
        [
            "trunks" | "network-gateways",
            id,
            action @ ("add_subports" | "remove_subports" | "connect_network" | "disconnect_network"),
        ] if request.method == "PUT" => advanced::act(world, request, caller, id, action),
        ["routers", rest @ ..] if rest.len() < 2 => routers::route(world, request, caller, rest),
        ["floatingips", rest @ ..] if rest.len() < 2 => floating_ips::route(world, request, caller, rest),
        // No agent is scheduled for anything.
        ["networks", _, "dhcp-agents"] | ["routers", _, "l3-agents"] if request.method == "GET" => {
            Ok(Reply::ok(json!({"agents": []})))
        }
        ["security-groups", rest @ ..] if rest.len() < 2 => security_groups::route(world, request, caller, rest),
        ["security-group-rules", rest @ ..] => rules::route(world, request, caller, rest),
        ["quotas", rest @ ..] => quotas::route(world, request, caller, rest),
        [many, id, "tags", rest @ ..] => tags::route(world, request, caller, many, id, rest),
        ["qos", "policies", rest @ ..] => extensions::qos_policies(world, request, caller, rest),
        [many] if request.method == "GET" => extensions::empty_list(many),
        _ => Err(Refusal::no_route()),
    }
}

/// An error of a Neutron class.
pub(crate) fn refusal(status: u16, kind: &'static str, message: impl Into<String>) -> Refusal {
    Refusal::new(status, kind, message)
}

fn bad_input(message: &str) -> Refusal {
    refusal(400, "InvalidInput", format!("Invalid input for operation: {message}."))
}

/// Neutron's error body.
pub(crate) fn refuse(refusal: &Refusal) -> Reply {
    let error = json!({"type": refusal.kind, "message": refusal.message, "detail": ""});
    Reply::json(refusal.status, json!({"NeutronError": error}))
}

/// The object in a body, under the name of its type.
fn body(request: &ServiceCall, noun: &Noun) -> Result<Value, Refusal> {
    let mut body = request.json("Body contains invalid data")?;
    if let Some(found @ Value::Object(_)) = body.get_mut(noun.one).map(Value::take) {
        return Ok(found);
    }
    let message = format!("Unable to find '{}' in request body", noun.one);
    Err(refusal(400, "HTTPBadRequest", message))
}

/// The bodies of a create: one, or several under the plural; the second value is true for several.
fn bodies(request: &ServiceCall, noun: &Noun) -> Result<(Vec<Row>, bool), Refusal> {
    let mut whole = request.json("Body contains invalid data")?;
    if let Some(Value::Array(items)) = whole.get_mut(noun.many).map(Value::take) {
        let rows = items.into_iter().filter_map(|item| if let Value::Object(row) = item { Some(row) } else { None });
        return Ok((rows.collect(), true));
    }
    Ok((vec![object(body(request, noun)?)], false))
}

/// Creates one or more objects from a body.
fn create_all(
    world: &mut CloudState,
    request: &ServiceCall,
    noun: &Noun,
    mut create: impl FnMut(&mut CloudState, &Row) -> Result<Row, Refusal>,
) -> Outcome {
    let (rows, many) = bodies(request, noun)?;
    let mut made = Vec::new();
    for row in &rows {
        made.push(create(world, row)?);
    }
    Ok(Reply::created(match made.pop() {
        Some(last) if !many => json!({noun.one: last}),
        last => {
            made.extend(last);
            json!({noun.many: made})
        }
    }))
}

fn object(value: Value) -> Row {
    match value {
        Value::Object(row) => row,
        _ => Row::new(),
    }
}

/// Adds the common attributes to a new row.
fn stamp_new(world: &mut CloudState, row: &mut Row) -> String {
    let (id, now) = (world.uuid(), world.stamp());
    row.shift_insert(0, "id".to_owned(), id.clone().into());
    row.entry("tags").or_insert_with(|| json!([]));
    row.put("created_at", now.clone());
    row.put("updated_at", now);
    row.put("revision_number", 0);
    id
}

/// Updates the time of the last change of a row.
fn touch(row: &mut Row, now: String) {
    row.put("updated_at", now);
    row.put("revision_number", row.int("revision_number") + 1);
}

/// Rejects updates of objects that the caller can see but does not own.
fn owned(caller: &Caller, row: &Row, rule: &str) -> Result<(), Refusal> {
    if caller.owns(row.text("project_id")) {
        return Ok(());
    }
    Err(refusal(403, "PolicyNotAuthorized", format!("rule:{rule} is disallowed by policy")))
}
