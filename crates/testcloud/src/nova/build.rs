//! The build of a server in the background: first the host and the network, then the volumes.

use serde_json::{Value, json};

use super::servers::{release_ports, set_state};
use crate::cinder;
use crate::fault::BuildFault;
use crate::keystone::Caller;
use crate::neutron::{self, Wanted};
use crate::state::CloudState;
use crate::table::{Fields, Row};

/// The compute hosts, which limit anti-affinity groups.
pub(super) const HOSTS: [&str; 4] = ["compute1", "compute2", "compute3", "compute4"];

/// Starts the build of an accepted server.
pub(super) fn begin(world: &mut CloudState, id: &str) {
    let fault = world.build_fault;
    let half = world.options.build_time / 2;
    let server = id.to_owned();
    world.after(half, move |world| place(world, &server));
    let server = id.to_owned();
    world.after(half * 2 + fault.slower, move |world| finish(world, &server, fault));
}

/// Chooses the host and creates the ports.
fn place(world: &mut CloudState, id: &str) {
    let Some(server) = building(world, id) else { return };
    let Some(host) = host_for(world, &server) else {
        fail(world, id, "No valid host was found. There are not enough hosts available.");
        return;
    };
    world.nova.servers.edit(id, |row| {
        row.put("_host", host);
        row.put("_host_id", format!("{:0>56}", &id.replace('-', "")));
        row.put("OS-EXT-AZ:availability_zone", "nova");
        row.put("OS-EXT-STS:task_state", "networking");
    });
    let server = building(world, id).unwrap_or(server);
    let caller = Caller::service(server.text("tenant_id"));
    let groups: Vec<String> = server
        .texts("_security_groups")
        .iter()
        .filter(|name| *name != "default" || server.texts("_security_groups").len() > 1)
        .flat_map(|name| neutron::find_group(world, server.text("tenant_id"), name))
        .collect();
    for item in server.list("_networks") {
        let field = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        if !field("port").is_empty() {
            let free = world.neutron.ports.get(field("port")).is_some_and(|port| port.text("device_id").is_empty());
            if !free {
                fail_build(world, id, &format!("Port {} is not usable for instance {id}.", field("port")));
                return;
            }
            neutron::bind(world, field("port"), &server);
            continue;
        }
        let network = field("network");
        let closed = world.neutron.networks.get(network).is_none_or(|row| {
            row.flag("router:external") && !row.flag("shared") && row.text("project_id") != caller.project
        });
        if closed {
            fail_build(world, id, "Failed to allocate the network(s), not rescheduling.");
            return;
        }
        let fixed_ip = item.get("fixed_ip").and_then(Value::as_str).map(str::to_owned);
        let wanted = Wanted { network: network.to_owned(), fixed_ip, groups: groups.clone() };
        match neutron::create_for_server(world, &caller, &server, &wanted) {
            Ok(port) => {
                world.nova.servers.edit(id, |row| row.push("_made_ports", port));
            }
            Err(refusal) => {
                let reason = match (refusal.kind, &wanted.fixed_ip) {
                    ("InvalidIpForNetwork", Some(ip)) => {
                        format!(
                            "Invalid input received: Fixed IP {ip} is not a valid ip address for network {network}."
                        )
                    }
                    _ => "Failed to allocate the network(s), not rescheduling.".to_owned(),
                };
                fail_build(world, id, &reason);
                return;
            }
        }
    }
    world.nova.servers.edit(id, |row| row.put("OS-EXT-STS:task_state", "spawning"));
}

/// Attaches the volumes and starts the server, or fails because of a fault.
fn finish(world: &mut CloudState, id: &str, fault: BuildFault) {
    let Some(server) = building(world, id) else { return };
    if fault.fails {
        fail(world, id, "No valid host was found. There are not enough hosts available.");
        return;
    }
    for (at, device) in server.list("_devices").iter().enumerate() {
        let field = |name: &str| device.get(name).and_then(Value::as_str).unwrap_or_default();
        let volume = if field("source_type") == "volume" {
            match world.cinder.volumes.get(field("uuid")).map(|row| row.text("status")) {
                Some("available") => field("uuid").to_owned(),
                // Nova waits for volumes that are being created.
                Some("creating") => {
                    let id = id.to_owned();
                    let pause = world.options.build_time.max(std::time::Duration::from_millis(1));
                    world.after(pause, move |world| finish(world, &id, fault));
                    return;
                }
                _ => {
                    fail_build(world, id, &format!("Volume {} is not available.", field("uuid")));
                    return;
                }
            }
        } else {
            cinder::make_for_server(world, &server, device)
        };
        let name = match field("device_name") {
            "" => super::attachments::device_name(at + usize::from(!server.text("_image").is_empty())),
            given => given.to_owned(),
        };
        let boot =
            device.get("boot_index").is_some_and(|index| index.as_i64() == Some(0) || index.as_str() == Some("0"));
        cinder::attached(world, &volume, id, &name);
        let kept = device.get("delete_on_termination").and_then(Value::as_bool).unwrap_or(false);
        world.nova.servers.edit(id, |row| {
            let entry = json!({"id": volume, "device": name, "delete_on_termination": kept, "root": boot, "tag": device.get("tag")});
            row.push("_volumes", entry);
        });
    }
    let (now, launched) = (world.stamp(), world.micro_stamp());
    world.nova.servers.edit(id, |row| {
        set_state(row, "ACTIVE", "active", None, 1);
        row.put("updated", now);
        row.put("OS-SRV-USG:launched_at", launched);
    });
}

/// The server, if it is building and not being deleted.
fn building(world: &CloudState, id: &str) -> Option<Row> {
    world.nova.servers.get(id).filter(|row| row.text("status") == "BUILD" && !row.flag("_deleting")).cloned()
}

/// The host with the fewest servers of the group that its policy allows; without a group, round robin.
fn host_for(world: &CloudState, server: &Row) -> Option<&'static str> {
    let group = world.nova.groups.get(server.text("_server_group"));
    let Some(group) = group else {
        let turn = usize::from_str_radix(server.text("_instance_name").trim_start_matches("instance-"), 16)
            .unwrap_or_default();
        return HOSTS.get(turn % HOSTS.len()).copied();
    };
    let members: Vec<&str> = world
        .nova
        .servers
        .by("_server_group", group.text("id"))
        .filter(|row| row.text("id") != server.text("id"))
        .map(|row| row.text("_host"))
        .filter(|host| !host.is_empty())
        .collect();
    let load = |host: &str| members.iter().filter(|other| **other == host).count();
    let limit = group.get("rules").and_then(|rules| rules.get("max_server_per_host"));
    let limit = limit.and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok()).unwrap_or(1);
    match group.text("policy") {
        "anti-affinity" => HOSTS.iter().copied().filter(|host| load(host) < limit).min_by_key(|host| load(host)),
        "soft-anti-affinity" => HOSTS.iter().copied().min_by_key(|host| load(host)),
        _ => HOSTS.iter().copied().max_by_key(|host| load(host)),
    }
}

fn fail_build(world: &mut CloudState, id: &str, reason: &str) {
    fail(world, id, &format!("Build of instance {id} aborted: {reason}"));
}

fn fail(world: &mut CloudState, id: &str, message: &str) {
    release_ports(world, id);
    let now = world.stamp();
    world.nova.servers.edit(id, |row| {
        set_state(row, "ERROR", "error", None, 0);
        row.put("fault", json!({"code": 500, "created": now, "message": message}));
        row.put("_made_ports", json!([]));
        row.put("updated", now);
    });
}
