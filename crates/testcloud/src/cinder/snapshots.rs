//! Snapshots of volumes.

use serde_json::{Value, json};

use super::{Call, limits, metadata, page, volumes};
use crate::nova::{check_fields, text_map};
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
            let rows = world.cinder.snapshots.by("project_id", &call.caller.project).rev().filter(fits).collect();
            let rows: Vec<Row> = page(request, rows)?.into_iter().map(show).collect();
            Ok(Reply::ok(json!({"snapshots": rows})))
        }
        ("GET", [id]) => Ok(Reply::ok(json!({"snapshot": show(find(world, call, id)?)}))),
        ("POST", []) => create(world, call),
        ("PUT", [id]) => {
            let body = call.request.member("snapshot")?;
            check_fields("snapshot", &body, &["name", "description", "display_name", "display_description"], &[])?;
            find(world, call, id)?;
            world.cinder.snapshots.edit(id, |row| row.extend(body));
            Ok(Reply::ok(json!({"snapshot": show(find(world, call, id)?)})))
        }
        ("DELETE", [id]) => {
            let row = find(world, call, id)?;
            if !matches!(row.text("status"), "available" | "error") {
                return Err(Refusal::bad("Invalid snapshot: Snapshot status must be available or error."));
            }
            world.cinder.snapshots.edit(id, |row| row.put("status", "deleting"));
            let id = (*id).to_owned();
            world.after(world.options.build_time / 2, move |world| {
                world.cinder.snapshots.remove(&id);
            });
            Ok(Reply::empty(202))
        }
        (_, [id, "metadata", rest @ ..]) => {
            let mut own =
                find(world, call, id)?.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
            let reply = metadata(call.request, &mut own, rest)?;
            world.cinder.snapshots.edit(id, |row| row.put("metadata", own));
            Ok(reply)
        }
        _ => Err(Refusal::no_route()),
    }
}

/// The snapshot, if it belongs to the caller.
pub(super) fn find<'a>(world: &'a CloudState, call: Call<'_>, id: &str) -> Result<&'a Row, Refusal> {
    let row = world.cinder.snapshots.get(id).filter(|row| call.caller.owns(row.text("project_id")));
    row.ok_or_else(|| Refusal::missing(format!("Snapshot {id} could not be found.")))
}

fn show(row: &Row) -> Row {
    let mut seen = public(row);
    if let Some(project) = seen.remove("project_id") {
        seen.put("os-extended-snapshot-attributes:project_id", project);
    }
    let done = if row.text("status") == "available" { "100%" } else { "0%" };
    seen.put("os-extended-snapshot-attributes:progress", done);
    seen
}

fn create(world: &mut CloudState, call: Call<'_>) -> Outcome {
    let body = call.request.member("snapshot")?;
    let known = ["name", "display_name", "description", "display_description", "volume_id", "force", "metadata"];
    check_fields("snapshot", &body, &known, &["volume_id"])?;
    let volume = volumes::find(world, call, body.text("volume_id"))?;
    let forced = body.flag("force") || body.text("force").eq_ignore_ascii_case("true");
    let status = volume.text("status");
    if !(status == "available" || forced && status == "in-use") {
        return Err(Refusal::bad(format!(
            "Invalid volume: Volume {} status must be available, but current status is: {status}.",
            volume.text("id")
        )));
    }
    let size = volume.int("size");
    let volume = volume.text("id").to_owned();
    let meta = text_map(&body, "metadata")?;
    limits::check_snapshot(world, &call.caller.project, size)?;
    let id = world.uuid();
    let mut row = Row::new();
    row.put("id", id.clone());
    row.put("name", body.get("name").or_else(|| body.get("display_name")).cloned().unwrap_or_default());
    row.put(
        "description",
        body.get("description").or_else(|| body.get("display_description")).cloned().unwrap_or_default(),
    );
    row.put("volume_id", volume);
    row.put("status", "creating");
    row.put("size", size);
    row.put("created_at", world.micro_stamp());
    row.put("updated_at", Value::Null);
    row.put("metadata", meta);
    row.put("user_id", call.caller.user.clone());
    row.put("project_id", call.caller.project.clone());
    world.cinder.snapshots.insert(row);
    let fault = world.build_fault;
    let made = id.clone();
    world.after(world.options.build_time / 2 + fault.slower, move |world| {
        world.cinder.snapshots.edit(&made, |row| row.put("status", if fault.fails { "error" } else { "available" }));
    });
    Ok(Reply::accepted(json!({"snapshot": show(find(world, call, &id)?)})))
}
