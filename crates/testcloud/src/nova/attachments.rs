//! `/servers/{id}/os-volume_attachments`.

use serde_json::{Value, json};

use super::servers::find;
use super::{Call, check_fields};
use crate::cinder;
use crate::reply::{Outcome, Refusal, Reply};
use crate::state::CloudState;
use crate::table::{Fields, Row};

pub(super) fn route(world: &mut CloudState, call: Call<'_>, id: &str, rest: &[&str]) -> Outcome {
    match (call.request.method.as_str(), rest) {
        ("GET", []) => {
            let row = find(world, call, id)?;
            let list: Vec<Value> = row.list("_volumes").iter().map(|volume| show(call, id, volume)).collect();
            Ok(Reply::ok(json!({"volumeAttachments": list})))
        }
        ("GET", [volume]) => {
            let found = attached(find(world, call, id)?, volume)?;
            Ok(Reply::ok(json!({"volumeAttachment": show(call, id, &found)})))
        }
        ("POST", []) => attach(world, call, id),
        ("DELETE", [volume]) => detach(world, call, id, volume),
        _ => Err(Refusal::no_method()),
    }
}

fn attached(server: &Row, volume: &str) -> Result<Value, Refusal> {
    let found = server.list("_volumes").iter().find(|own| own.get("id").and_then(Value::as_str) == Some(volume));
    let missing = || Refusal::missing(format!("Instance {} is not attached to volume {volume}", server.text("id")));
    found.cloned().ok_or_else(missing)
}

/// `/dev/vda`, `/dev/vdb`, … by position.
pub(super) fn device_name(position: usize) -> String {
    let letter = u8::try_from(position % 26).map_or('z', |at| char::from(b'a' + at));
    format!("/dev/vd{letter}")
}

fn show(call: Call<'_>, server: &str, volume: &Value) -> Value {
    let mut row = json!({
        "id": volume.get("id"), "volumeId": volume.get("id"), "serverId": server, "device": volume.get("device"),
    });
    if call.minor >= 70 {
        row["tag"] = volume.get("tag").cloned().unwrap_or_default();
    }
    if call.minor >= 79 {
        row["delete_on_termination"] = volume.get("delete_on_termination").cloned().unwrap_or_default();
    }
    if call.minor >= 89 {
        if let Some(map) = row.as_object_mut() {
            map.remove("id");
        }
        row["attachment_id"] = volume.get("id").cloned().unwrap_or_default();
        row["bdm_uuid"] = volume.get("id").cloned().unwrap_or_default();
    }
    row
}

fn attach(world: &mut CloudState, call: Call<'_>, id: &str) -> Outcome {
    let body = call.request.member("volumeAttachment")?;
    let mut known = vec!["volumeId", "device"];
    if call.minor >= 49 {
        known.push("tag");
    }
    if call.minor >= 79 {
        known.push("delete_on_termination");
    }
    check_fields("volumeAttachment", &body, &known, &["volumeId"])?;
    let server = find(world, call, id)?.clone();
    let vm_state = server.text("OS-EXT-STS:vm_state");
    if !matches!(
        vm_state,
        "active" | "paused" | "stopped" | "resized" | "soft-delete" | "suspended" | "shelved_offloaded"
    ) {
        return Err(Refusal::conflict(format!(
            "Cannot 'attach_volume' instance {id} while it is in vm_state {vm_state}"
        )));
    }
    let volume = body.text("volumeId");
    let row = world.cinder.volumes.get(volume).filter(|row| call.caller.owns(row.text("os-vol-tenant-attr:tenant_id")));
    let row = row.ok_or_else(|| Refusal::missing(format!("Volume {volume} could not be found.")))?;
    if attached(&server, volume).is_ok() {
        return Err(Refusal::bad(format!("Invalid volume: Volume {volume} is already attached to instance {id}")));
    }
    if row.text("status") != "available" {
        return Err(Refusal::bad(format!(
            "Invalid input received: Invalid volume: Volume {volume} status must be available or downloading to reserve, \
             but the current status is {}. (HTTP 400)",
            row.text("status")
        )));
    }
    let device = match body.text("device") {
        "" => {
            let taken: Vec<&str> =
                server.list("_volumes").iter().filter_map(|own| own.get("device")?.as_str()).collect();
            let free = (1..26).map(device_name).find(|name| !taken.contains(&name.as_str()));
            free.ok_or_else(|| {
                Refusal::forbidden(
                    "The maximum allowed number of disk devices (25) to attach to a single instance has been exceeded.",
                )
            })?
        }
        given => {
            if server.list("_volumes").iter().any(|own| own.get("device").and_then(Value::as_str) == Some(given)) {
                return Err(Refusal::conflict(format!("The supplied device path ({given}) is in use.")));
            }
            given.to_owned()
        }
    };
    let volume = volume.to_owned();
    let entry = json!({
        "id": volume, "device": device, "delete_on_termination": body.flag("delete_on_termination"), "tag": body.get("tag"),
    });
    world.nova.servers.edit(id, |row| row.push("_volumes", entry.clone()));
    cinder::set_status(world, &volume, "attaching");
    let server = id.to_owned();
    let pause = world.options.build_time / 4 + world.build_fault.slower;
    let fails = world.build_fault.fails;
    world.after(pause, move |world| {
        let wanted = world.nova.servers.get(&server).is_some_and(|row| attached(row, &volume).is_ok());
        if fails || !wanted {
            cinder::set_status(world, &volume, if fails { "error_attaching" } else { "available" });
            world.nova.servers.edit(&server, |row| {
                row.drop_from("_volumes", |own| own.get("id").and_then(Value::as_str) == Some(volume.as_str()));
            });
        } else {
            cinder::attached(world, &volume, &server, &device);
        }
    });
    Ok(Reply::ok(json!({"volumeAttachment": show(call, id, &entry)})))
}

fn detach(world: &mut CloudState, call: Call<'_>, id: &str, volume: &str) -> Outcome {
    let server = find(world, call, id)?.clone();
    let entry = attached(&server, volume)?;
    if entry.get("root") == Some(&Value::Bool(true)) {
        return Err(Refusal::forbidden("Cannot detach a root device volume"));
    }
    let status = world.cinder.volumes.get(volume).map_or("", |row| row.text("status"));
    if status != "in-use" {
        return Err(Refusal::bad(format!(
            "Invalid volume: Invalid input received: Invalid volume: Unable to detach volume. Volume status must be \
             'in-use' and attach_status must be 'attached' to detach. (current: {status})"
        )));
    }
    cinder::set_status(world, volume, "detaching");
    let (id, volume) = (id.to_owned(), volume.to_owned());
    let pause = world.options.build_time / 4 + world.build_fault.slower;
    world.after(pause, move |world| {
        cinder::detached(world, &volume, &id);
        world.nova.servers.edit(&id, |row| {
            row.drop_from("_volumes", |own| own.get("id").and_then(Value::as_str) == Some(volume.as_str()));
        });
    });
    Ok(Reply::empty(202))
}
