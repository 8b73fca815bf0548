//! Backups of volumes.

use serde_json::{Value, json};

use super::{Call, page, volumes};
use crate::nova::check_fields;
use crate::reply::{Outcome, Refusal, Reply};
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

pub(super) fn route(world: &mut CloudState, call: Call<'_>, rest: &[&str]) -> Outcome {
    match (call.request.method.as_str(), rest) {
        ("GET", [] | ["detail"]) => {
            let request = call.request;
            let fits = |row: &&Row| {
                ["name", "status", "volume_id"]
                    .iter()
                    .all(|field| request.param(field).is_none_or(|value| row.text(field) == value))
            };
            let rows = world.cinder.backups.by("project_id", &call.caller.project).rev().filter(fits).collect();
            let rows: Vec<Row> = page(request, rows)?.into_iter().map(public).collect();
            Ok(Reply::ok(json!({"backups": rows})))
        }
        ("GET", [id]) => Ok(Reply::ok(json!({"backup": public(find(world, call, id)?)}))),
        ("POST", []) => create(world, call),
        ("DELETE", [id]) => {
            let row = find(world, call, id)?;
            if !matches!(row.text("status"), "available" | "error") {
                return Err(Refusal::bad("Invalid backup: Backup status must be available or error"));
            }
            world.cinder.backups.edit(id, |row| row.put("status", "deleting"));
            let id = (*id).to_owned();
            world.after(world.options.build_time / 2, move |world| {
                world.cinder.backups.remove(&id);
            });
            Ok(Reply::empty(202))
        }
        ("POST", [id, "restore"]) => restore(world, call, id),
        _ => Err(Refusal::no_route()),
    }
}

/// The backup, if it belongs to the caller.
fn find<'a>(world: &'a CloudState, call: Call<'_>, id: &str) -> Result<&'a Row, Refusal> {
    let row = world.cinder.backups.get(id).filter(|row| call.caller.owns(row.text("project_id")));
    row.ok_or_else(|| Refusal::missing(format!("Backup {id} could not be found.")))
}

fn create(world: &mut CloudState, call: Call<'_>) -> Outcome {
    let body = call.request.member("backup")?;
    let known = ["name", "description", "volume_id", "container", "incremental", "force", "snapshot_id", "metadata"];
    check_fields("backup", &body, &known, &["volume_id"])?;
    let volume = volumes::find(world, call, body.text("volume_id"))?;
    let status = volume.text("status");
    if !(status == "available" || body.flag("force") && status == "in-use") {
        return Err(Refusal::bad(format!(
            "Invalid volume: Volume to be backed up must be available or in-use, but the current status is \"{status}\"."
        )));
    }
    let (size, volume) = (volume.int("size"), volume.text("id").to_owned());
    let id = world.uuid();
    let mut row = Row::new();
    row.put("id", id.clone());
    row.put("name", body.get("name").cloned().unwrap_or_default());
    row.put("description", body.get("description").cloned().unwrap_or_default());
    row.put("volume_id", volume);
    row.put("status", "creating");
    row.put("size", size);
    row.put("fail_reason", Value::Null);
    row.put("created_at", world.micro_stamp());
    row.put("project_id", call.caller.project.clone());
    world.cinder.backups.insert(row);
    let fault = world.build_fault;
    let made = id.clone();
    world.after(world.options.build_time / 2 + fault.slower, move |world| {
        world.cinder.backups.edit(&made, |row| row.put("status", if fault.fails { "error" } else { "available" }));
    });
    Ok(Reply::accepted(json!({"backup": {"id": id, "name": find(world, call, &id)?.text("name"), "links": []}})))
}

fn restore(world: &mut CloudState, call: Call<'_>, id: &str) -> Outcome {
    let row = find(world, call, id)?;
    if row.text("status") != "available" {
        return Err(Refusal::bad("Invalid backup: Backup status must be available"));
    }
    let size = row.int("size");
    let body = call.request.member("restore")?;
    check_fields("restore", &body, &["name", "volume_id"], &[])?;
    let volume = match (body.text("volume_id"), body.text("name")) {
        ("", "") => volumes::restored(world, call, &format!("restore_backup_{id}"), size)?,
        ("", name) => volumes::restored(world, call, name, size)?,
        (volume, _) => {
            volumes::restore_to(world, call, volume, size)?;
            volume.to_owned()
        }
    };
    world.cinder.volumes.edit(&volume, |row| {
        let mut metadata = row.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        metadata.put("src_backup_id", id);
        row.put("metadata", metadata);
    });
    let name = volumes::find(world, call, &volume)?.text("name").to_owned();
    Ok(Reply::accepted(json!({"restore": {"backup_id": id, "volume_id": volume, "volume_name": name}})))
}
