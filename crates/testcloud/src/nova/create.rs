//! `POST /servers`: validation before a build starts.

use serde_json::{Value, json};

use super::servers::set_state;
use super::{Call, build, check_fields, invalid, keypairs, limits, links, name_field, text_map, whole_number};
use crate::keystone::Caller;
use crate::neutron;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::python;
use crate::state::{CloudState, is_uuid_like};
use crate::table::{Fields, Row};

const FIELDS: [&str; 22] = [
    "name",
    "flavorRef",
    "imageRef",
    "networks",
    "key_name",
    "security_groups",
    "metadata",
    "user_data",
    "availability_zone",
    "block_device_mapping_v2",
    "block_device_mapping",
    "config_drive",
    "adminPass",
    "min_count",
    "max_count",
    "accessIPv4",
    "accessIPv6",
    "OS-DCF:diskConfig",
    "return_reservation_id",
    "personality",
    "trusted_image_certificates",
    "host",
];

pub(super) fn create(world: &mut CloudState, call: Call<'_>) -> Outcome {
    let caller = call.caller;
    let body = call.request.member("server")?;
    let server = read(world, call, &body)?;
    let hints = hints(call)?;
    let group = group(world, caller, &hints)?;
    let (least, most) = (whole_number(&body, "min_count", 1)?, whole_number(&body, "max_count", 1)?);
    let count = most.or(least).unwrap_or(1);
    if least.unwrap_or(1) > count {
        return Err(Refusal::bad("min_count must be <= max_count"));
    }
    let flavor = server.get("_flavor").and_then(Value::as_object).cloned().unwrap_or_default();
    limits::check(world, &caller.project, count, &flavor)?;
    let networks = networks(world, caller, call.minor, &body)?;
    let devices = block_devices(world, caller, &body)?;

    let password = match body.text("adminPass") {
        "" => world.hex_id()[..12].to_owned(),
        given => given.to_owned(),
    };
    let mut first = None;
    for at in 1..=count {
        let mut row = server.clone();
        if count > 1 {
            row.put("name", format!("{}-{at}", server.text("name")));
        }
        let id = world.uuid();
        world.nova.made += 1;
        row.put("id", id.clone());
        row.put("_instance_name", format!("instance-{:08x}", world.nova.made));
        row.put("_networks", networks.clone());
        row.put("_devices", devices.clone());
        row.put("_scheduler_hints", hints.clone());
        if let Some(group) = &group {
            row.put("_server_group", group.clone());
        }
        world.nova.servers.insert(row);
        build::begin(world, &id);
        first.get_or_insert(id);
    }
    let id = first.unwrap_or_default();
    if body.flag("return_reservation_id") {
        return Ok(Reply::accepted(json!({"reservation_id": format!("r-{}", &world.hex_id()[..8])})));
    }
    let groups = security_group_names(&body);
    let groups: Vec<Value> = groups.iter().map(|name| json!({"name": name})).collect();
    let link = format!("{}/compute/v2.1/servers/{id}", world.base);
    let reply = json!({"server": {
        "id": id, "links": links(world, "servers", &id), "OS-DCF:diskConfig": server.text("OS-DCF:diskConfig"),
        "security_groups": groups, "adminPass": password,
    }});
    Ok(Reply::accepted(reply).header("location", link))
}

/// Reads the simple attributes of a server.
fn read(world: &CloudState, call: Call<'_>, body: &Row) -> Result<Row, Refusal> {
    let caller = call.caller;
    let mut known = FIELDS.to_vec();
    let mut required = vec!["name", "flavorRef"];
    if call.minor >= 19 {
        known.push("description");
    }
    if call.minor >= 37 {
        required.push("networks");
    }
    if call.minor >= 52 {
        known.push("tags");
    }
    if call.minor >= 57 {
        known.retain(|field| *field != "personality");
    }
    if call.minor >= 74 {
        known.extend(["hypervisor_hostname"]);
    }
    if call.minor >= 90 {
        known.push("hostname");
    }
    check_fields("server", body, &known, &required)?;
    let name = name_field(body, "name", 255)?;
    let metadata = text_map(body, "metadata")?;
    let image = image(world, caller, body)?;
    let flavor_id = body.get("flavorRef").map(crate::request::python_text).unwrap_or_default();
    let flavor_id = flavor_id.rsplit('/').next().unwrap_or_default().to_owned();
    let flavor = world.nova.flavors.get(&flavor_id).cloned();
    let flavor = flavor.ok_or_else(|| Refusal::bad(format!("Flavor {flavor_id} could not be found.")))?;
    if let Some(image) = world.glance.images.get(&image) {
        fits_flavor(image, &flavor, body)?;
    }
    let key = body.text("key_name");
    if !key.is_empty() && !keypairs::exists(world, &caller.user, key) {
        return Err(Refusal::bad("Invalid key_name provided."));
    }
    let zone = body.text("availability_zone");
    if !zone.is_empty() && zone.split(':').next() != Some("nova") {
        return Err(Refusal::bad("The requested availability zone is not available"));
    }
    if body.text("user_data").len() > 65535 {
        return Err(invalid("user_data", &body["user_data"], &format!("{} is too long", python(&body["user_data"]))));
    }
    for group in security_group_names(body) {
        match neutron::find_group(world, &caller.project, &group).len() {
            1 => {}
            0 if group == "default" => {}
            0 => {
                let message = format!("Unable to find security_group with name or id '{group}'");
                return Err(Refusal::bad(message));
            }
            _ => {
                let message = format!(
                    "Multiple security_groups matches found for name '{group}', use an ID to be more specific."
                );
                return Err(Refusal::conflict(message));
            }
        }
    }
    let hostname: String = name
        .to_ascii_lowercase()
        .chars()
        .map(|c| if c == ' ' || c == '_' { '-' } else { c })
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
        .take(63)
        .collect();
    let now = world.stamp();
    let mut row = Row::new();
    row.put("name", name);
    row.put("tenant_id", caller.project.clone());
    row.put("user_id", caller.user.clone());
    row.put("metadata", metadata);
    row.put("_image", image);
    row.put("_flavor", flavor);
    row.put("created", now.clone());
    row.put("updated", now);
    row.put("accessIPv4", body.text("accessIPv4"));
    row.put("accessIPv6", body.text("accessIPv6"));
    row.put(
        "OS-DCF:diskConfig",
        if body.contains_key("OS-DCF:diskConfig") { body.text("OS-DCF:diskConfig") } else { "MANUAL" },
    );
    row.put("OS-EXT-AZ:availability_zone", "");
    row.put(
        "config_drive",
        if crate::request::python_text(body.get("config_drive").unwrap_or(&Value::Null)).eq_ignore_ascii_case("true") {
            "True"
        } else {
            ""
        },
    );
    row.put("key_name", if key.is_empty() { Value::Null } else { key.into() });
    row.put("OS-SRV-USG:launched_at", Value::Null);
    row.put("locked", false);
    row.put("locked_reason", Value::Null);
    // Requests that cannot have a description get the name.
    let description = if call.minor < 19 { body.get("name") } else { body.get("description") };
    row.put("description", description.cloned().unwrap_or_default());
    row.put("tags", body.get("tags").cloned().unwrap_or_else(|| json!([])));
    row.put("_hostname", if body.contains_key("hostname") { body.text("hostname").to_owned() } else { hostname });
    row.put("_user_data", body.get("user_data").cloned().unwrap_or_default());
    row.put("_security_groups", security_group_names(body));
    row.put("_volumes", json!([]));
    row.put("_made_ports", json!([]));
    set_state(&mut row, "BUILD", "building", Some("scheduling"), 0);
    Ok(row)
}

fn security_group_names(body: &Row) -> Vec<String> {
    let names: Vec<String> = body
        .list("security_groups")
        .iter()
        .filter_map(|group| group.get("name")?.as_str())
        .map(str::to_owned)
        .collect();
    if names.is_empty() { vec!["default".to_owned()] } else { names }
}

/// The boot image; empty when booting from a block device.
fn image(world: &CloudState, caller: &Caller, body: &Row) -> Result<String, Refusal> {
    let wanted = body.get("imageRef").cloned().unwrap_or_default();
    let text = wanted.as_str().unwrap_or_default();
    let id = text.rsplit('/').next().unwrap_or_default();
    if !id.is_empty() && !is_uuid_like(id) {
        let reason = format!("{} is not valid under any of the given schemas", python(&wanted));
        return Err(invalid("imageRef", &wanted, &reason));
    }
    let boots = |device: &&Value| device.get("boot_index").and_then(number).is_some_and(|index| index == 0);
    let device = body.list("block_device_mapping_v2").iter().find(boots);
    if id.is_empty() {
        let device = device.or_else(|| body.list("block_device_mapping").first());
        return if device.is_some() { Ok(String::new()) } else { Err(Refusal::bad("Missing imageRef attribute")) };
    }
    let usable = |row: &&Row| crate::glance::sees(caller, row);
    let row = world.glance.images.get(id).filter(usable).ok_or_else(|| Refusal::bad("Can not find requested image"))?;
    if row.text("status") != "active" {
        return Err(Refusal::bad(format!("Image {id} is not active.")));
    }
    Ok(id.to_owned())
}

fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

fn fits_flavor(image: &Row, flavor: &Row, body: &Row) -> Result<(), Refusal> {
    if image.int("min_ram") > flavor.int("ram") {
        return Err(Refusal::bad("Flavor's memory is too small for requested image."));
    }
    let from_volume = !body.list("block_device_mapping_v2").is_empty();
    if !from_volume && flavor.int("disk") > 0 && image.int("min_disk") > flavor.int("disk") {
        return Err(Refusal::bad(format!(
            "Flavor's disk is smaller than the minimum size specified in image metadata. Flavor disk is {} bytes, minimum \
             size is {} bytes.",
            flavor.int("disk") << 30,
            image.int("min_disk") << 30
        )));
    }
    Ok(())
}

fn hints(call: Call<'_>) -> Result<Row, Refusal> {
    let body = call.request.json("Malformed request body")?;
    let hints = body.get("os:scheduler_hints").or_else(|| body.get("OS-SCH-HNT:scheduler_hints"));
    Ok(hints.and_then(Value::as_object).cloned().unwrap_or_default())
}

fn group(world: &CloudState, caller: &Caller, hints: &Row) -> Result<Option<String>, Refusal> {
    let Some(value) = hints.get("group") else { return Ok(None) };
    let id = value.as_str().or_else(|| value.as_array()?.first()?.as_str()).unwrap_or_default();
    if !is_uuid_like(id) {
        return Err(invalid("group", value, &format!("{} is not a 'uuid'", python(value))));
    }
    let known = world.nova.groups.get(id).is_some_and(|row| caller.owns(row.text("project_id")));
    if known { Ok(Some(id.to_owned())) } else { Err(Refusal::bad(format!("Instance group {id} could not be found."))) }
}

/// The networks and ports of a server, each with `network` or `port`.
fn networks(world: &CloudState, caller: &Caller, minor: u32, body: &Row) -> Result<Vec<Value>, Refusal> {
    let items = match body.get("networks") {
        Some(Value::String(text)) if text == "none" && minor >= 37 => return Ok(Vec::new()),
        Some(Value::String(text)) if text == "auto" && minor >= 37 => return own_network(world, caller, true),
        Some(Value::Array(items)) if items.is_empty() && minor < 37 => return own_network(world, caller, false),
        None => return own_network(world, caller, false),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(schema(other, other)),
    };
    let mut wanted: Vec<Value> = Vec::new();
    for item in items {
        let whole = body.get("networks").unwrap_or(item);
        let Some(object) = item.as_object() else { return Err(schema(whole, item)) };
        let known = ["uuid", "port", "fixed_ip", "tag"];
        let fits = |value: &Value| value.is_null() || value.as_str().is_some_and(is_uuid_like);
        let ids = ["uuid", "port"].iter().filter_map(|field| object.get(*field)).all(fits);
        if !ids || object.keys().any(|key| !known.contains(&key.as_str())) {
            return Err(schema(whole, whole));
        }
        let (network, port, fixed_ip) = (object.text("uuid"), object.text("port"), object.text("fixed_ip"));
        if !port.is_empty() {
            check_port(world, caller, port)?;
            if wanted.iter().any(|other| other.get("port") == object.get("port")) {
                return Err(Refusal::bad(format!("Port {port} is used twice.")));
            }
            wanted.push(json!({"port": port}));
        } else if network.is_empty() {
            return Err(Refusal::bad("Bad networks format: network uuid is not in proper format ()"));
        } else {
            check_network(world, caller, network)?;
            check_address(world, network, fixed_ip)?;
            let fixed_ip = object.get("fixed_ip").filter(|_| !fixed_ip.is_empty());
            wanted.push(json!({"network": network, "fixed_ip": fixed_ip}));
        }
    }
    Ok(wanted)
}

fn schema(whole: &Value, at: &Value) -> Refusal {
    invalid("networks", whole, &format!("{} is not valid under any of the given schemas", python(at)))
}

/// The only network of a project, if none is specified.
fn own_network(world: &CloudState, caller: &Caller, must: bool) -> Result<Vec<Value>, Refusal> {
    let networks = &world.neutron.networks;
    let own: Vec<&Row> = networks
        .by("project_id", &caller.project)
        .chain(networks.iter().filter(|row| row.flag("shared") && row.text("project_id") != caller.project))
        .collect();
    match own.as_slice() {
        [] if must => {
            let message = format!("Unable to automatically allocate a network for project {}", caller.project);
            Err(Refusal::bad(message))
        }
        [] => Ok(Vec::new()),
        [one] => {
            check_network(world, caller, one.text("id"))?;
            Ok(vec![json!({"network": one.text("id")})])
        }
        _ => {
            let message = "Multiple possible networks found, use a Network ID to be more specific.";
            Err(Refusal::conflict(message))
        }
    }
}

fn check_network(world: &CloudState, caller: &Caller, id: &str) -> Result<(), Refusal> {
    let seen = |row: &&Row| caller.owns(row.text("project_id")) || row.flag("shared") || row.flag("router:external");
    let row = world.neutron.networks.get(id).filter(seen);
    let row = row.ok_or_else(|| Refusal::bad(format!("Network {id} could not be found.")))?;
    if row.list("subnets").is_empty() {
        return Err(Refusal::bad(format!("Network {id} requires a subnet in order to boot instances on.")));
    }
    Ok(())
}

fn check_address(world: &CloudState, network: &str, ip: &str) -> Result<(), Refusal> {
    if ip.is_empty() {
        return Ok(());
    }
    let holds = |port: &&Row| {
        port.list("fixed_ips").iter().any(|own| own.get("ip_address").and_then(Value::as_str) == Some(ip))
    };
    let holder = world.neutron.ports.by("network_id", network).find(holds);
    holder.map_or(Ok(()), |port| {
        let message = format!("Fixed IP address {ip} is already in use on instance {}.", port.text("device_id"));
        Err(Refusal::bad(message))
    })
}

/// Rejects a port that cannot be attached to a server.
pub(super) fn check_port(world: &CloudState, caller: &Caller, id: &str) -> Result<(), Refusal> {
    let row = world.neutron.ports.get(id).filter(|row| caller.owns(row.text("project_id")));
    let row = row.ok_or_else(|| Refusal::bad(format!("Port id {id} could not be found.")))?;
    if !row.text("device_id").is_empty() {
        return Err(Refusal::conflict(format!("Port {id} is still in use.")));
    }
    if row.list("fixed_ips").is_empty() {
        return Err(Refusal::bad(format!("Port {id} requires a FixedIP in order to be used.")));
    }
    Ok(())
}

/// Checks the block devices and returns those that are volumes.
fn block_devices(world: &CloudState, caller: &Caller, body: &Row) -> Result<Vec<Value>, Refusal> {
    let mut devices = Vec::new();
    let old = body.list("block_device_mapping").iter().filter_map(Value::as_object).map(|device| {
        let (kind, id) = match device.get("snapshot_id").filter(|id| !id.is_null()) {
            Some(snapshot) => ("snapshot", Some(snapshot)),
            None => ("volume", device.get("volume_id")),
        };
        json!({
            "uuid": id, "source_type": kind, "destination_type": "volume", "volume_size": device.get("volume_size"),
            "device_name": device.get("device_name"), "delete_on_termination": device.get("delete_on_termination"),
        })
    });
    for item in body.list("block_device_mapping_v2").iter().cloned().chain(old) {
        let empty = Row::new();
        let device = item.as_object().unwrap_or(&empty);
        let id = device.text("uuid");
        let broken = |reason: String| Err(Refusal::bad(format!("Block Device Mapping is Invalid: {reason}")));
        match device.text("source_type") {
            "volume" => {
                let row =
                    world.cinder.volumes.get(id).filter(|row| caller.owns(row.text("os-vol-tenant-attr:tenant_id")));
                let Some(row) = row else { return broken(format!("failed to get volume {id}.")) };
                if !matches!(row.text("status"), "available" | "creating") {
                    let message = format!(
                        "Invalid volume: volume '{id}' status must be 'available'. Currently in '{}' status.",
                        row.text("status")
                    );
                    return Err(Refusal::bad(message));
                }
            }
            "image" => {
                if world.glance.images.get(id).is_none() {
                    return broken(format!("failed to get image {id}."));
                }
                let volume = device.text("destination_type") == "volume";
                if volume && whole_number(device, "volume_size", 1)?.is_none() {
                    return broken("You specified more local devices than the limit allows".to_owned());
                }
            }
            "snapshot" => {
                if world.cinder.snapshots.get(id).is_none() {
                    return broken(format!("failed to get snapshot {id}."));
                }
            }
            "blank" => {}
            _ => {
                let value = device.get("source_type").cloned().unwrap_or_default();
                let reason = format!("{} is not one of ['volume', 'image', 'snapshot', 'blank']", python(&value));
                return Err(invalid("source_type", &value, &reason));
            }
        }
        let local = device.text("destination_type") == "local"
            || device.text("source_type") == "image" && device.text("destination_type").is_empty();
        if !local {
            devices.push(item);
        }
    }
    Ok(devices)
}
