//! Attachments: their creation by Nova, and Cinder's list.

use serde_json::{Value, json};

use super::volumes::{find, set_status};
use super::{Call, admin_only};
use crate::reply::{Outcome, Refusal, Reply};
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

pub(super) fn route(world: &mut CloudState, call: Call<'_>, rest: &[&str]) -> Outcome {
    match (call.request.method.as_str(), rest) {
        ("GET", [] | ["detail"]) => {
            let own = |row: &&Row| find(world, call, row.text("volume_id")).is_ok();
            let fits = |row: &&Row| {
                ["volume_id", "instance_id"].iter().all(|name| {
                    let field = if *name == "instance_id" { "instance" } else { name };
                    call.request.param(name).is_none_or(|value| row.text(field) == value)
                })
            };
            let rows: Vec<Row> = world.cinder.attachments.iter().filter(own).filter(fits).map(public).collect();
            Ok(Reply::ok(json!({"attachments": rows})))
        }
        ("GET", [id]) => {
            let row = world.cinder.attachments.get(id).ok_or_else(|| missing(id))?;
            find(world, call, row.text("volume_id")).map_err(|_| missing(id))?;
            Ok(Reply::ok(json!({"attachment": public(row)})))
        }
        ("POST", []) => {
            let body = call.request.member("attachment")?;
            find(world, call, body.text("volume_uuid"))?;
            // Volumes are attached through Nova; only services may create attachments directly.
            admin_only(call.caller, "volume:attachment_create")?;
            Err(Refusal::bad("Volumes are attached through the compute service."))
        }
        _ => Err(Refusal::no_method()),
    }
}

fn missing(id: &str) -> Refusal {
    Refusal::missing(format!("Volume attachment could not be found with filter: attachment_id = {id}."))
}

/// Records that a volume is attached to a server.
pub(crate) fn attached(world: &mut CloudState, volume: &str, server: &str, device: &str) {
    let (id, now) = (world.uuid(), world.micro_stamp());
    let host = world.nova.servers.get(server).map(|row| row.text("_host").to_owned());
    let mut row = Row::new();
    row.put("id", id.clone());
    row.put("status", "attached");
    row.put("instance", server);
    row.put("volume_id", volume);
    row.put("attached_at", now.clone());
    row.put("detached_at", Value::Null);
    row.put("attach_mode", "rw");
    row.put("connection_info", json!({}));
    world.cinder.attachments.insert(row);
    world.cinder.volumes.edit(volume, |row| {
        let entry = json!({
            "id": volume, "attachment_id": id, "volume_id": volume, "server_id": server, "host_name": host,
            "device": device, "attached_at": now,
        });
        row.push("attachments", entry);
    });
    set_status(world, volume, "in-use");
}

/// Records that a volume is detached from a server.
pub(crate) fn detached(world: &mut CloudState, volume: &str, server: &str) {
    let ended = world.cinder.attachments.by("volume_id", volume).find(|row| row.text("instance") == server);
    if let Some(id) = ended.map(|row| row.text("id").to_owned()) {
        world.cinder.attachments.remove(&id);
    }
    let Some(left) = world.cinder.volumes.edit(volume, |row| {
        row.drop_from("attachments", |own| own.get("server_id").and_then(Value::as_str) == Some(server));
        row.list("attachments").len()
    }) else {
        return;
    };
    set_status(world, volume, if left == 0 { "available" } else { "in-use" });
}
