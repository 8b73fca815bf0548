//! `POST /servers/{id}/action`.

use serde_json::{Value, json};

use super::servers::{find, set_state};
use super::{Call, admin_only};
use crate::neutron;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::python_text;
use crate::state::CloudState;
use crate::table::{Fields, Row};

/// A simple state change: its name, allowed states, and the final state.
struct Move {
    action: &'static str,
    /// The name in Nova's error messages.
    verb: &'static str,
    from: &'static [&'static str],
    task: &'static str,
    status: &'static str,
    vm_state: &'static str,
    power_state: i64,
}

const MOVES: [Move; 12] = [
    Move {
        action: "os-stop",
        verb: "stop",
        from: &["active", "error"],
        task: "powering-off",
        status: "SHUTOFF",
        vm_state: "stopped",
        power_state: 4,
    },
    Move {
        action: "os-start",
        verb: "start",
        from: &["stopped"],
        task: "powering-on",
        status: "ACTIVE",
        vm_state: "active",
        power_state: 1,
    },
    Move {
        action: "reboot",
        verb: "reboot",
        from: &["active", "stopped", "paused", "suspended", "error"],
        task: "rebooting",
        status: "ACTIVE",
        vm_state: "active",
        power_state: 1,
    },
    Move {
        action: "suspend",
        verb: "suspend",
        from: &["active"],
        task: "suspending",
        status: "SUSPENDED",
        vm_state: "suspended",
        power_state: 4,
    },
    Move {
        action: "resume",
        verb: "resume",
        from: &["suspended"],
        task: "resuming",
        status: "ACTIVE",
        vm_state: "active",
        power_state: 1,
    },
    Move {
        action: "pause",
        verb: "pause",
        from: &["active"],
        task: "pausing",
        status: "PAUSED",
        vm_state: "paused",
        power_state: 3,
    },
    Move {
        action: "unpause",
        verb: "unpause",
        from: &["paused"],
        task: "unpausing",
        status: "ACTIVE",
        vm_state: "active",
        power_state: 1,
    },
    Move {
        action: "shelve",
        verb: "shelve",
        from: &["active", "stopped", "paused", "suspended"],
        task: "shelving",
        status: "SHELVED_OFFLOADED",
        vm_state: "shelved_offloaded",
        power_state: 4,
    },
    Move {
        action: "unshelve",
        verb: "unshelve",
        from: &["shelved", "shelved_offloaded"],
        task: "unshelving",
        status: "ACTIVE",
        vm_state: "active",
        power_state: 1,
    },
    Move {
        action: "rescue",
        verb: "rescue",
        from: &["active", "stopped", "error"],
        task: "rescuing",
        status: "RESCUE",
        vm_state: "rescued",
        power_state: 1,
    },
    Move {
        action: "unrescue",
        verb: "unrescue",
        from: &["rescued"],
        task: "unrescuing",
        status: "ACTIVE",
        vm_state: "active",
        power_state: 1,
    },
    Move {
        action: "rebuild",
        verb: "rebuild",
        from: &["active", "stopped", "error"],
        task: "rebuilding",
        status: "ACTIVE",
        vm_state: "active",
        power_state: 1,
    },
];

const OTHERS: [&str; 14] = [
    "resize",
    "confirmResize",
    "revertResize",
    "lock",
    "unlock",
    "changePassword",
    "addSecurityGroup",
    "removeSecurityGroup",
    "os-getConsoleOutput",
    "os-getVNCConsole",
    "os-resetState",
    "forceDelete",
    "createImage",
    "os-getSPICEConsole",
];

pub(super) fn route(world: &mut CloudState, call: Call<'_>, id: &str) -> Outcome {
    if call.request.method != "POST" {
        return Err(Refusal::no_method());
    }
    let Value::Object(body) = call.request.json("Malformed request body")? else {
        return Err(Refusal::bad("Malformed request body"));
    };
    let Some((action, given)) = body.iter().next() else {
        return Err(Refusal::bad("Malformed request body"));
    };
    let plain = MOVES.iter().find(|known| known.action == action);
    if plain.is_none() && !OTHERS.contains(&action.as_str()) {
        return Err(Refusal::bad(format!("There is no such action: {action}")));
    }
    // Actions look servers up in their cell, which the error message shows.
    let unmapped = |_| Refusal::missing(format!("Instance {id} has no mapping to a cell."));
    let row = find(world, call, id).map_err(unmapped)?.clone();
    if row.flag("locked") && !call.caller.admin && !matches!(action.as_str(), "lock" | "unlock") {
        return Err(Refusal::conflict(format!("Instance {id} is locked")));
    }
    let empty = Row::new();
    let arguments = given.as_object().unwrap_or(&empty);
    if let Some(plain) = plain {
        return begin(world, &row, plain, arguments);
    }
    match action.as_str() {
        "resize" => resize(world, &row, arguments),
        "confirmResize" => {
            allowed(&row, "confirmResize", &["resized"])?;
            world.nova.servers.edit(id, |row| {
                row.remove("_old_flavor");
                set_state(row, "ACTIVE", "active", None, 1);
            });
            Ok(Reply::empty(204))
        }
        "revertResize" => {
            allowed(&row, "revertResize", &["resized"])?;
            world.nova.servers.edit(id, |row| {
                if let Some(old) = row.remove("_old_flavor") {
                    row.put("_flavor", old);
                }
                set_state(row, "ACTIVE", "active", None, 1);
            });
            Ok(Reply::empty(202))
        }
        "lock" | "unlock" => {
            let reason = arguments.get("locked_reason").cloned().unwrap_or_default();
            world.nova.servers.edit(id, |row| {
                row.put("locked", action == "lock");
                row.put("locked_reason", if action == "lock" { reason } else { Value::Null });
            });
            Ok(Reply::empty(202))
        }
        "addSecurityGroup" | "removeSecurityGroup" => security_group(world, call, id, action, arguments.text("name")),
        "os-getConsoleOutput" => Ok(Reply::ok(json!({"output": format!("{} login:\n", row.text("_hostname"))}))),
        "os-getVNCConsole" | "os-getSPICEConsole" => {
            let kind = arguments.text("type");
            Ok(Reply::ok(json!({"console": {"type": kind, "url": format!("{}/console?token={id}", world.base)}})))
        }
        "os-resetState" => {
            admin_only(call.caller, "os-admin-actions:reset_state")?;
            let active = arguments.text("state") == "active";
            world.nova.servers.edit(id, |row| {
                if active {
                    set_state(row, "ACTIVE", "active", None, 1);
                } else {
                    set_state(row, "ERROR", "error", None, 0);
                }
            });
            Ok(Reply::empty(202))
        }
        "forceDelete" => {
            super::servers::begin_delete(world, id);
            Ok(Reply::empty(202))
        }
        "createImage" => {
            allowed(&row, "createImage", &["active", "stopped", "paused", "suspended"])?;
            let image = crate::glance::snapshot_of(world, call.caller, &row, arguments.text("name"));
            let metadata = arguments.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
            world.glance.images.edit(&image, |row| row.extend(metadata));
            let link = format!("{}/image/v2/images/{image}", world.base);
            Ok(Reply::accepted(json!({"image_id": image})).header("location", link))
        }
        _ => Ok(Reply::empty(202)),
    }
}

/// Rejects an action in a state that does not allow it.
fn allowed(row: &Row, verb: &str, from: &[&str]) -> Result<(), Refusal> {
    let (id, vm_state) = (row.text("id"), row.text("OS-EXT-STS:vm_state"));
    if !from.contains(&vm_state) {
        return Err(Refusal::conflict(format!("Cannot '{verb}' instance {id} while it is in vm_state {vm_state}")));
    }
    let task = row.text("OS-EXT-STS:task_state");
    if !task.is_empty() {
        return Err(Refusal::conflict(format!("Cannot '{verb}' instance {id} while it is in task_state {task}")));
    }
    Ok(())
}

fn begin(world: &mut CloudState, row: &Row, plain: &'static Move, arguments: &Row) -> Outcome {
    allowed(row, plain.verb, plain.from)?;
    let id = row.text("id").to_owned();
    let mut reply = Reply::empty(202);
    if plain.action == "reboot" && !matches!(arguments.text("type").to_ascii_uppercase().as_str(), "SOFT" | "HARD") {
        let value = arguments.get("type").cloned().unwrap_or_default();
        return Err(super::invalid(
            "type",
            &value,
            &format!("{} is not one of ['HARD', 'Hard', 'hard', 'SOFT', 'Soft', 'soft']", python_text(&value)),
        ));
    }
    if plain.action == "rebuild" {
        let image = arguments.text("imageRef").to_owned();
        if world.glance.images.get(&image).is_none() {
            return Err(Refusal::bad("Cannot find image for rebuild"));
        }
        world.nova.servers.edit(&id, |row| {
            row.put("_image", image);
            for field in ["name", "metadata", "description"] {
                if let Some(value) = arguments.get(field) {
                    row.put(field, value.clone());
                }
            }
            row.put("status", "REBUILD");
        });
        reply =
            Reply::accepted(json!({"server": {"id": id, "status": "REBUILD", "adminPass": &id[..12.min(id.len())]}}));
    }
    if plain.action == "reboot" {
        world.nova.servers.edit(&id, |row| {
            row.put(
                "status",
                if arguments.text("type").eq_ignore_ascii_case("hard") { "HARD_REBOOT" } else { "REBOOT" },
            );
        });
    }
    world.nova.servers.edit(&id, |row| row.put("OS-EXT-STS:task_state", plain.task));
    let pause = world.options.build_time / 4 + world.build_fault.slower;
    let fails = world.build_fault.fails;
    world.after(pause, move |world| {
        let now = world.stamp();
        world.nova.servers.edit(&id, |row| {
            if row.flag("_deleting") {
                return;
            }
            if fails {
                set_state(row, "ERROR", "error", None, 0);
                row.put("fault", json!({"code": 500, "created": now, "message": "Injected fault."}));
            } else {
                set_state(row, plain.status, plain.vm_state, None, plain.power_state);
            }
            row.put("updated", now);
        });
    });
    Ok(reply)
}

fn resize(world: &mut CloudState, row: &Row, arguments: &Row) -> Outcome {
    allowed(row, "resize", &["active", "stopped"])?;
    let wanted = arguments.get("flavorRef").map(python_text).unwrap_or_default();
    let flavor = world.nova.flavors.get(&wanted).cloned();
    let flavor = flavor.ok_or_else(|| Refusal::bad(format!("Flavor {wanted} could not be found.")))?;
    let old = row.get("_flavor").cloned().unwrap_or_default();
    if old.get("id").and_then(Value::as_str) == Some(wanted.as_str()) {
        return Err(Refusal::bad("When resizing, instances must change flavor!"));
    }
    let id = row.text("id").to_owned();
    world.nova.servers.edit(&id, |row| {
        row.put("status", "RESIZE");
        row.put("OS-EXT-STS:task_state", "resize_prep");
        row.put("OS-DCF:diskConfig", arguments.get("OS-DCF:diskConfig").and_then(Value::as_str).unwrap_or("MANUAL"));
    });
    let pause = world.options.build_time / 2 + world.build_fault.slower;
    let fails = world.build_fault.fails;
    world.after(pause, move |world| {
        let now = world.stamp();
        world.nova.servers.edit(&id, |row| {
            if row.flag("_deleting") {
                return;
            }
            row.put("updated", now.clone());
            if fails {
                set_state(row, "ERROR", "error", None, 0);
                row.put("fault", json!({"code": 500, "created": now, "message": "No valid host was found. "}));
                return;
            }
            row.put("_old_flavor", old);
            row.put("_flavor", flavor);
            set_state(row, "VERIFY_RESIZE", "resized", None, 1);
        });
    });
    Ok(Reply::empty(202))
}

fn security_group(world: &mut CloudState, call: Call<'_>, id: &str, action: &str, name: &str) -> Outcome {
    let found = neutron::find_group(world, &call.caller.project, name);
    let [group] = found.as_slice() else {
        let message = format!("Security group {name} not found for project {}.", call.caller.project);
        return Err(Refusal::missing(message));
    };
    let ports: Vec<String> = world.neutron.ports.by("device_id", id).map(|row| row.text("id").to_owned()).collect();
    for port in ports {
        world.neutron.ports.edit(&port, |row| {
            row.drop_from("security_groups", |own| own == group.as_str());
            if action == "addSecurityGroup" {
                row.push("security_groups", group.clone());
            }
        });
    }
    Ok(Reply::empty(202))
}

/// `POST /servers/{id}/remote-consoles`.
pub(super) fn remote_console(world: &CloudState, call: Call<'_>, id: &str) -> Outcome {
    find(world, call, id)?;
    let body = call.request.member("remote_console")?;
    let url = format!("{}/console?token={id}", world.base);
    Ok(Reply::ok(json!({"remote_console": {"protocol": body.get("protocol"), "type": body.get("type"), "url": url}})))
}
