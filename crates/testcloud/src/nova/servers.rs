//! Servers: lists, views, update and deletion.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Call, admin_only, check_fields, create, links, name_field, page};
use crate::reply::{Outcome, Refusal, Reply};
use crate::state::CloudState;
use crate::table::{Fields, Row};
use crate::{cinder, neutron};

pub(super) fn route(world: &mut CloudState, call: Call<'_>, rest: &[&str]) -> Outcome {
    match (call.request.method.as_str(), rest) {
        ("GET", [] | ["detail"]) => list(world, call, !rest.is_empty()),
        ("POST", []) => create::create(world, call),
        ("GET", [id]) => Ok(Reply::ok(json!({"server": show(world, call, find(world, call, id)?)}))),
        ("PUT", [id]) => update(world, call, id),
        ("DELETE", [id]) => {
            let row = find(world, call, id)?;
            if row.flag("locked") && !call.caller.admin {
                return Err(Refusal::conflict(format!("Instance {id} is locked")));
            }
            begin_delete(world, id);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_method()),
    }
}

/// The server, if it belongs to the caller.
pub(super) fn find<'a>(world: &'a CloudState, call: Call<'_>, id: &str) -> Result<&'a Row, Refusal> {
    let row = world.nova.servers.get(id).filter(|row| call.caller.owns(row.text("tenant_id")));
    row.ok_or_else(|| Refusal::missing(format!("Instance {id} could not be found.")))
}

/// Sets all state attributes that clients see.
pub(super) fn set_state(row: &mut Row, status: &str, vm_state: &str, task_state: Option<&str>, power_state: i64) {
    row.put("status", status);
    row.put("OS-EXT-STS:vm_state", vm_state);
    row.put("OS-EXT-STS:task_state", task_state);
    row.put("OS-EXT-STS:power_state", power_state);
}

/// `addresses` of a server: by network, the fixed and floating addresses of its ports.
fn addresses_of(world: &CloudState, row: &Row) -> Value {
    let mut addresses: Map<String, Value> = Map::new();
    for port in world.neutron.ports.by("device_id", row.text("id")) {
        let Some(network) = world.neutron.networks.get(port.text("network_id")) else { continue };
        let mac = port.text("mac_address");
        let entry = |ip: &str, kind: &str| {
            let version = if ip.contains(':') { 6 } else { 4 };
            json!({"version": version, "addr": ip, "OS-EXT-IPS:type": kind, "OS-EXT-IPS-MAC:mac_addr": mac})
        };
        for ip in port.list("fixed_ips") {
            let ip = ip.get("ip_address").and_then(Value::as_str).unwrap_or_default();
            addresses.push(network.text("name"), entry(ip, "fixed"));
            let floating = world.neutron.floating_ips.by("port_id", port.text("id"));
            for floating in floating.filter(|floating| floating.text("fixed_ip_address") == ip) {
                addresses.push(network.text("name"), entry(floating.text("floating_ip_address"), "floating"));
            }
        }
    }
    Value::Object(addresses)
}

/// `GET /servers/{id}/ips`.
pub(super) fn addresses(world: &CloudState, call: Call<'_>, id: &str) -> Outcome {
    let row = find(world, call, id)?;
    Ok(Reply::ok(json!({"addresses": addresses_of(world, row)})))
}

fn show(world: &CloudState, call: Call<'_>, row: &Row) -> Row {
    let mut seen = Row::new();
    let id = row.text("id");
    let keep = |seen: &mut Row, fields: &[&str]| {
        for field in fields {
            seen.put(field, row.get(*field).cloned().unwrap_or_default());
        }
    };
    keep(&mut seen, &["id", "name", "status", "tenant_id", "user_id", "metadata"]);
    seen.put("hostId", row.text("_host_id"));
    let image = row.text("_image");
    seen.put(
        "image",
        match image {
            "" => json!(""),
            id => {
                json!({"id": id, "links": [{"rel": "bookmark", "href": format!("{}/compute/images/{id}", world.base)}]})
            }
        },
    );
    let empty = Row::new();
    let flavor = row.get("_flavor").and_then(Value::as_object).unwrap_or(&empty);
    seen.put(
        "flavor",
        if call.minor >= 47 {
            json!({
                "vcpus": flavor.int("vcpus"), "ram": flavor.int("ram"), "disk": flavor.int("disk"),
                "ephemeral": flavor.int("OS-FLV-EXT-DATA:ephemeral"), "swap": flavor.int("swap"),
                "original_name": flavor.text("name"), "extra_specs": flavor.get("extra_specs"),
            })
        } else {
            let link = format!("{}/compute/flavors/{}", world.base, flavor.text("id"));
            json!({"id": flavor.text("id"), "links": [{"rel": "bookmark", "href": link}]})
        },
    );
    keep(&mut seen, &["created", "updated"]);
    seen.put("addresses", addresses_of(world, row));
    keep(&mut seen, &["accessIPv4", "accessIPv6"]);
    seen.put("links", links(world, "servers", id));
    keep(&mut seen, &["OS-DCF:diskConfig"]);
    match row.text("status") {
        "ERROR" => keep(&mut seen, &["fault"]),
        "ACTIVE" | "BUILD" | "REBUILD" | "RESIZE" | "VERIFY_RESIZE" => seen.put("progress", 0),
        _ => {}
    }
    keep(&mut seen, &["OS-EXT-AZ:availability_zone", "config_drive", "key_name", "OS-SRV-USG:launched_at"]);
    seen.put("OS-SRV-USG:terminated_at", Value::Null);
    if call.caller.admin {
        let host = row.text("_host");
        seen.put("OS-EXT-SRV-ATTR:host", host);
        seen.put("OS-EXT-SRV-ATTR:hypervisor_hostname", host);
        seen.put("OS-EXT-SRV-ATTR:instance_name", row.text("_instance_name"));
        if call.minor >= 3 {
            seen.put("OS-EXT-SRV-ATTR:root_device_name", "/dev/vda");
            seen.put("OS-EXT-SRV-ATTR:user_data", row.get("_user_data").cloned().unwrap_or_default());
        }
    }
    keep(&mut seen, &["OS-EXT-STS:task_state", "OS-EXT-STS:vm_state", "OS-EXT-STS:power_state"]);
    let volumes = row.list("_volumes").iter().filter(|volume| volume.get("pending").is_none());
    let volumes: Vec<Value> = volumes
        .map(|volume| {
            let mut entry = json!({"id": volume.get("id")});
            if call.minor >= 3 {
                entry["delete_on_termination"] = volume.get("delete_on_termination").cloned().unwrap_or_default();
            }
            entry
        })
        .collect();
    seen.put("os-extended-volumes:volumes_attached", volumes);
    let groups = security_groups_of(world, row);
    if !groups.is_empty() {
        seen.put("security_groups", groups);
    }
    let since = |seen: &mut Row, minor: u32, fields: &[&str]| {
        if call.minor >= minor {
            keep(seen, fields);
        }
    };
    since(&mut seen, 9, &["locked"]);
    since(&mut seen, 73, &["locked_reason"]);
    since(&mut seen, 19, &["description"]);
    since(&mut seen, 26, &["tags"]);
    if call.minor >= 63 {
        seen.put("trusted_image_certificates", Value::Null);
    }
    if call.minor >= 90 || call.minor >= 3 && call.caller.admin {
        seen.put("OS-EXT-SRV-ATTR:hostname", row.text("_hostname"));
    }
    if call.minor >= 71 {
        let group = row.text("_server_group");
        seen.put("server_groups", if group.is_empty() { json!([]) } else { json!([group]) });
    }
    seen
}

/// The security groups of a server's ports, by name, once for every port.
fn security_groups_of(world: &CloudState, row: &Row) -> Vec<Value> {
    let ports = world.neutron.ports.by("device_id", row.text("id"));
    let groups = ports.flat_map(|port| port.texts("security_groups"));
    groups.filter_map(|id| world.neutron.groups.get(&id)).map(|group| json!({"name": group.text("name")})).collect()
}

fn list(world: &CloudState, call: Call<'_>, detail: bool) -> Outcome {
    let request = call.request;
    let everyone = request.param("all_tenants").is_some_and(|value| !matches!(value, "0" | "false" | "False"));
    if everyone {
        admin_only(call.caller, "servers:index:get_all_tenants")?;
    }
    let rows: Box<dyn DoubleEndedIterator<Item = &Row>> = if everyone {
        Box::new(world.nova.servers.iter())
    } else {
        Box::new(world.nova.servers.by("tenant_id", &call.caller.project))
    };
    // Newest first, as in Nova.
    let rows: Vec<&Row> = rows.rev().filter(|row| fits(world, call, row)).collect();
    let (rows, next) = page(world, request, rows, "marker")?;
    let brief = |row: &Row| json!({"id": row.text("id"), "name": row.text("name"), "links": links(world, "servers", row.text("id"))});
    let rows: Vec<Value> =
        rows.into_iter().map(|row| if detail { Value::Object(show(world, call, row)) } else { brief(row) }).collect();
    let mut reply = json!({"servers": rows});
    if let Some(next) = next {
        reply["servers_links"] = next;
    }
    Ok(Reply::ok(reply))
}

fn fits(world: &CloudState, call: Call<'_>, row: &Row) -> bool {
    call.request.query.iter().all(|(name, value)| match name.as_str() {
        // Nova's name filter is a regular expression; only anchors are supported here.
        "name" => {
            let (head, tail) = (value.starts_with('^'), value.ends_with('$'));
            let plain = value.trim_start_matches('^').trim_end_matches('$').replace('\\', "");
            let own = row.text("name");
            match (head, tail) {
                (true, true) => own == plain,
                (true, false) => own.starts_with(&plain),
                (false, true) => own.ends_with(&plain),
                (false, false) => own.contains(&plain),
            }
        }
        "status" => row.text("status").eq_ignore_ascii_case(value),
        "image" => row.text("_image") == value,
        "flavor" => row.get("_flavor").and_then(Value::as_object).is_some_and(|flavor| flavor.text("id") == value),
        "uuid" => row.text("id") == value,
        "key_name" => row.text("key_name") == value,
        "project_id" | "tenant_id" => !call.caller.admin || row.text("tenant_id") == value,
        "tags" if call.minor >= 26 => value.split(',').all(|tag| row.texts("tags").iter().any(|own| own == tag)),
        "ip" => world.neutron.ports.by("device_id", row.text("id")).any(|port| {
            port.list("fixed_ips")
                .iter()
                .any(|ip| ip.get("ip_address").and_then(Value::as_str).is_some_and(|ip| ip.contains(value.as_str())))
        }),
        _ => true,
    })
}

fn update(world: &mut CloudState, call: Call<'_>, id: &str) -> Outcome {
    let body = call.request.member("server")?;
    let mut known = vec!["name", "accessIPv4", "accessIPv6", "OS-DCF:diskConfig"];
    if call.minor >= 19 {
        known.push("description");
    }
    if call.minor >= 90 {
        known.push("hostname");
    }
    check_fields("server", &body, &known, &[])?;
    if body.contains_key("name") {
        name_field(&body, "name", 255)?;
    }
    find(world, call, id)?;
    let now = world.stamp();
    world.nova.servers.edit(id, |row| {
        for (field, value) in body {
            row.put(if field == "hostname" { "_hostname" } else { &field }, value);
        }
        row.put("updated", now);
    });
    Ok(Reply::ok(json!({"server": show(world, call, find(world, call, id)?)})))
}

/// Marks a server as deleting; it disappears after half a build time.
pub(super) fn begin_delete(world: &mut CloudState, id: &str) {
    let begun = world.nova.servers.edit(id, |row| {
        let again = row.flag("_deleting");
        row.put("_deleting", true);
        row.put("OS-EXT-STS:task_state", "deleting");
        !again
    });
    if begun == Some(true) {
        let id = id.to_owned();
        let slower = world.build_fault.slower;
        world.after(delete_time(world) + slower, move |world| finish_delete(world, &id));
    }
}

fn delete_time(world: &CloudState) -> Duration {
    world.options.build_time / 2
}

fn finish_delete(world: &mut CloudState, id: &str) {
    release_ports(world, id);
    let Some(row) = world.nova.servers.remove(id) else { return };
    for volume in row.list("_volumes") {
        let volume_id = volume.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        cinder::detached(world, &volume_id, id);
        if volume.get("delete_on_termination") == Some(&Value::Bool(true)) {
            cinder::begin_delete(world, &volume_id);
        }
    }
}

/// Deletes the ports that Nova created for a server and unbinds the others.
pub(super) fn release_ports(world: &mut CloudState, id: &str) {
    let made = world.nova.servers.get(id).map(|row| row.texts("_made_ports")).unwrap_or_default();
    let ports: Vec<String> = world.neutron.ports.by("device_id", id).map(|row| row.text("id").to_owned()).collect();
    for port in ports {
        if made.contains(&port) {
            neutron::delete_port(world, &port);
        } else {
            neutron::unbind(world, &port);
        }
    }
}
