//! Volumes.

use serde_json::{Value, json};

use super::{Call, admin_only, limits, metadata, page, types};
use crate::nova::{check_fields, invalid, text_map};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::python;
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

const FIELDS: [&str; 14] = [
    "name",
    "display_name",
    "description",
    "display_description",
    "size",
    "volume_type",
    "metadata",
    "snapshot_id",
    "source_volid",
    "consistencygroup_id",
    "availability_zone",
    "multiattach",
    "imageRef",
    "backup_id",
];

/// The key of the tenant in Cinder's responses.
const TENANT: &str = "os-vol-tenant-attr:tenant_id";

pub(super) fn route(world: &mut CloudState, call: Call<'_>, rest: &[&str]) -> Outcome {
    match (call.request.method.as_str(), rest) {
        ("GET", [] | ["detail"]) => list(world, call, !rest.is_empty()),
        ("GET", ["summary"]) => {
            let rows = world.cinder.volumes.by(TENANT, &call.caller.project);
            let (count, size) = rows.fold((0, 0), |(count, size), row| (count + 1, size + row.int("size")));
            Ok(Reply::ok(json!({"volume-summary": {"total_count": count, "total_size": size, "metadata": {}}})))
        }
        ("POST", []) => create(world, call),
        ("GET", [id]) => Ok(Reply::ok(json!({"volume": show(world, call, find(world, call, id)?)}))),
        ("PUT", [id]) => {
            let body = call.request.member("volume")?;
            check_fields(
                "volume",
                &body,
                &["name", "description", "display_name", "display_description", "metadata"],
                &[],
            )?;
            check_name(&body)?;
            text_map(&body, "metadata")?;
            find(world, call, id)?;
            let now = world.micro_stamp();
            world.cinder.volumes.edit(id, |row| {
                for (field, value) in body {
                    row.put(field.trim_start_matches("display_"), value);
                }
                row.put("updated_at", now);
            });
            Ok(Reply::ok(json!({"volume": show(world, call, find(world, call, id)?)})))
        }
        ("DELETE", [id]) => {
            let row = find(world, call, id)?;
            let free = matches!(
                row.text("status"),
                "available" | "error" | "error_restoring" | "error_extending" | "error_managing"
            );
            let forced = call.request.switch("force") && call.caller.admin;
            let cascade = call.request.switch("cascade");
            let snapshots: Vec<String> =
                world.cinder.snapshots.by("volume_id", id).map(|row| row.text("id").to_owned()).collect();
            if !(free || forced) || !cascade && !snapshots.is_empty() || row.list("attachments").iter().next().is_some()
            {
                return Err(Refusal::bad(
                    "Invalid volume: Volume status must be available or error or error_restoring or error_extending or \
                     error_managing and must not be migrating, attached, belong to a group, have snapshots or be \
                     disassociated from snapshots after volume transfer.",
                ));
            }
            for snapshot in snapshots {
                world.cinder.snapshots.remove(&snapshot);
            }
            begin_delete(world, id);
            Ok(Reply::empty(202))
        }
        (_, [id, "metadata", rest @ ..]) => {
            let mut own =
                find(world, call, id)?.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
            let reply = metadata(call.request, &mut own, rest)?;
            world.cinder.volumes.edit(id, |row| row.put("metadata", own));
            Ok(reply)
        }
        _ => Err(Refusal::no_route()),
    }
}

/// The volume, if it belongs to the caller.
pub(super) fn find<'a>(world: &'a CloudState, call: Call<'_>, id: &str) -> Result<&'a Row, Refusal> {
    let row = world.cinder.volumes.get(id).filter(|row| call.caller.owns(row.text(TENANT)));
    row.ok_or_else(|| Refusal::missing(format!("Volume {id} could not be found.")))
}

fn show(world: &CloudState, call: Call<'_>, row: &Row) -> Row {
    let mut seen = public(row);
    // Cinder shows it with the metadata of the user.
    if let (Some(flag), Some(metadata)) =
        (row.get("_readonly"), seen.get_mut("metadata").and_then(Value::as_object_mut))
    {
        metadata.put("readonly", flag.clone());
    }
    let id = row.text("id");
    let link = |rel: &str, version: &str| json!({"rel": rel, "href": format!("{}/volume{version}/{}/volumes/{id}", world.base, row.text(TENANT))});
    seen.put("links", json!([link("self", "/v3"), link("bookmark", "")]));
    if call.caller.admin {
        seen.put("os-vol-host-attr:host", "cinder@fake#fake");
    }
    seen
}

fn list(world: &CloudState, call: Call<'_>, detail: bool) -> Outcome {
    let request = call.request;
    let everyone = call.caller.admin
        && request.param("all_tenants").is_some_and(|value| !matches!(value, "0" | "false" | "False"));
    let rows: Box<dyn DoubleEndedIterator<Item = &Row>> = if everyone {
        Box::new(world.cinder.volumes.iter())
    } else {
        Box::new(world.cinder.volumes.by(TENANT, &call.caller.project))
    };
    let fits = |row: &&Row| {
        request.query.iter().all(|(name, value)| match name.as_str() {
            "name" | "display_name" => row.text("name") == value,
            "status" => row.text("status") == value,
            "id" => row.text("id") == value,
            "availability_zone" => row.text("availability_zone") == value,
            _ => true,
        })
    };
    // Newest first, as in Cinder.
    let rows = page(request, rows.rev().filter(fits).collect())?;
    let rows: Vec<Row> = rows
        .into_iter()
        .map(|row| {
            let mut seen = show(world, call, row);
            if !detail {
                seen.retain(|field, _| matches!(field.as_str(), "id" | "name" | "links"));
            }
            seen
        })
        .collect();
    Ok(Reply::ok(json!({"volumes": rows})))
}

fn check_name(body: &Row) -> Result<(), Refusal> {
    for field in ["name", "display_name"] {
        let length = body.text(field).chars().count();
        if length > 255 {
            return Err(Refusal::bad(format!("Invalid input received: name has {length} characters, more than 255.")));
        }
    }
    Ok(())
}

fn create(world: &mut CloudState, call: Call<'_>) -> Outcome {
    let caller = call.caller;
    let body = call.request.member("volume")?;
    check_fields("volume", &body, &FIELDS, &[])?;
    let size = match body.get("size").filter(|value| !value.is_null()) {
        None => None,
        Some(value) => {
            let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
            let no_number = || invalid("size", value, &format!("{} does not match '^[0-9]+$'", python(value)));
            let number = number.ok_or_else(no_number)?;
            if number < 1 {
                return Err(invalid("size", value, &format!("{number} is less than the minimum of 1")));
            }
            Some(number)
        }
    };
    let meta = text_map(&body, "metadata")?;
    check_name(&body)?;
    let kind = types::resolve(world, body.text("volume_type"))?;
    let (image, snapshot, source) = (body.text("imageRef"), body.text("snapshot_id"), body.text("source_volid"));
    let mut bootable = false;
    let mut least = None;
    let mut image_meta = None;
    if !snapshot.is_empty() {
        let row = super::snapshots::find(world, call, snapshot)?;
        least = Some((row.int("size"), "snapshot"));
        bootable = world.cinder.volumes.get(row.text("volume_id")).is_some_and(|row| row.text("bootable") == "true");
    } else if !source.is_empty() {
        let row = find(world, call, source)?;
        least = Some((row.int("size"), "original volume"));
        bootable = row.text("bootable") == "true";
    } else if !image.is_empty() {
        let row = world.glance.images.get(image).filter(|row| crate::glance::sees(caller, row));
        let unknown = || Refusal::bad("Invalid image identifier or unable to access requested image.");
        let row = row.ok_or_else(unknown)?;
        if size.is_some_and(|size| size < row.int("min_disk")) {
            return Err(Refusal::bad(format!(
                "Invalid input received: Volume size {}GB cannot be smaller than the image minDisk size {}GB.",
                size.unwrap_or_default(),
                row.int("min_disk")
            )));
        }
        bootable = true;
        image_meta = Some(json!({"image_id": image, "image_name": row.text("name")}));
    }
    let size = match (size, least) {
        (Some(size), Some((least, what))) if size < least => {
            return Err(Refusal::bad(format!(
                "Invalid input received: Volume size '{size}'GB cannot be smaller than the {what} size {least}GB. They must \
                 be >= {what} size."
            )));
        }
        (Some(size), _) => size,
        (None, Some((least, _))) => least,
        (None, None) => {
            return Err(Refusal::bad(
                "The server could not comply with the request since it is either malformed or otherwise incorrect.",
            ));
        }
    };
    let zone = if body.text("availability_zone").is_empty() { "nova" } else { body.text("availability_zone") };
    if zone != "nova" {
        return Err(Refusal::bad(format!("Invalid input received: Availability zone '{zone}' is invalid.")));
    }
    limits::check(world, &caller.project, 1, size)?;
    let name = body.get("name").or_else(|| body.get("display_name")).filter(|value| !value.is_null());
    let description = body.get("description").or_else(|| body.get("display_description"));
    let mut row = blank(world, &caller.project, &caller.user, size, &kind);
    row.put("name", name.cloned().unwrap_or_else(|| "".into()));
    row.put("description", description.cloned().unwrap_or_default());
    row.put("metadata", meta);
    let hints = call.request.json("Malformed request body")?;
    row.put("_scheduler_hints", hints.get("OS-SCH-HNT:scheduler_hints").cloned().unwrap_or_default());
    row.put("multiattach", body.flag("multiattach"));
    row.put("bootable", if bootable { "true" } else { "false" });
    row.put("snapshot_id", if snapshot.is_empty() { Value::Null } else { snapshot.into() });
    row.put("source_volid", if source.is_empty() { Value::Null } else { source.into() });
    if let Some(image_meta) = image_meta {
        row.put("volume_image_metadata", image_meta);
    }
    let id = row.text("id").to_owned();
    world.cinder.volumes.insert(row);
    let fault = world.build_fault;
    let made = id.clone();
    world.after(world.options.build_time + fault.slower, move |world| {
        let creating = world.cinder.volumes.get(&made).is_some_and(|row| row.text("status") == "creating");
        if creating {
            set_status(world, &made, if fault.fails { "error" } else { "available" });
        }
    });
    Ok(Reply::accepted(json!({"volume": show(world, call, find(world, call, &id)?)})))
}

/// Creates the volume that a backup is restored to.
pub(super) fn restored(world: &mut CloudState, call: Call<'_>, name: &str, size: i64) -> Result<String, Refusal> {
    limits::check(world, &call.caller.project, 1, size)?;
    let kind = types::resolve(world, "")?;
    let mut row = blank(world, &call.caller.project, &call.caller.user, size, &kind);
    row.put("name", name);
    let id = row.text("id").to_owned();
    world.cinder.volumes.insert(row);
    restore(world, &id);
    Ok(id)
}

/// Restores a backup to a volume that exists.
pub(super) fn restore_to(world: &mut CloudState, call: Call<'_>, id: &str, size: i64) -> Result<(), Refusal> {
    let volume = find(world, call, id)?;
    let own = volume.int("size");
    if own < size {
        return Err(Refusal::bad(format!(
            "Invalid volume: volume size {own} is too small to restore backup of size {size}."
        )));
    }
    if volume.text("status") != "available" {
        return Err(Refusal::bad("Invalid volume: Volume to be restored to must be available"));
    }
    restore(world, id);
    Ok(())
}

fn restore(world: &mut CloudState, id: &str) {
    set_status(world, id, "restoring-backup");
    let (fault, id) = (world.build_fault, id.to_owned());
    world.after(world.options.build_time + fault.slower, move |world| {
        set_status(world, &id, if fault.fails { "error_restoring" } else { "available" });
    });
}

/// A new volume that is being created.
fn blank(world: &mut CloudState, project: &str, user: &str, size: i64, kind: &str) -> Row {
    let now = world.micro_stamp();
    let mut row = Row::new();
    row.put("id", world.uuid());
    row.put("status", "creating");
    row.put("size", size);
    row.put("availability_zone", "nova");
    row.put("created_at", now);
    row.put("updated_at", Value::Null);
    row.put("name", "");
    row.put("description", Value::Null);
    row.put("volume_type", kind);
    row.put("snapshot_id", Value::Null);
    row.put("source_volid", Value::Null);
    row.put("metadata", json!({}));
    row.put("user_id", user);
    row.put("bootable", "false");
    row.put("encrypted", false);
    row.put("replication_status", Value::Null);
    row.put("consistencygroup_id", Value::Null);
    row.put("multiattach", false);
    row.put("attachments", json!([]));
    row.put(TENANT, project);
    row
}

/// Creates the volume for a block device of a server. It is ready immediately, because Nova waits for it.
pub(crate) fn make_for_server(world: &mut CloudState, server: &Row, device: &Value) -> String {
    let size =
        device.get("volume_size").and_then(|size| size.as_i64().or_else(|| size.as_str()?.parse().ok())).unwrap_or(1);
    let wanted = device.get("volume_type").and_then(Value::as_str).unwrap_or_default();
    let kind = types::resolve(world, wanted).unwrap_or_else(|_| types::DEFAULT.to_owned());
    let mut row = blank(world, server.text("tenant_id"), server.text("user_id"), size, &kind);
    row.put("status", "available");
    if device.get("source_type").and_then(Value::as_str) == Some("snapshot") {
        row.put("snapshot_id", device.get("uuid").cloned().unwrap_or_default());
    }
    row.put(
        "bootable",
        if device.get("source_type").and_then(Value::as_str) == Some("image") { "true" } else { "false" },
    );
    let id = row.text("id").to_owned();
    world.cinder.volumes.insert(row);
    id
}

/// Sets the state of a volume.
pub(crate) fn set_status(world: &mut CloudState, id: &str, status: &str) {
    let now = world.micro_stamp();
    world.cinder.volumes.edit(id, |row| {
        row.put("status", status);
        row.put("updated_at", now);
    });
}

/// Marks a volume as deleting; it disappears after half a build time.
pub(crate) fn begin_delete(world: &mut CloudState, id: &str) {
    set_status(world, id, "deleting");
    let id = id.to_owned();
    let fault = world.build_fault;
    world.after(world.options.build_time / 2 + fault.slower, move |world| {
        if fault.fails {
            set_status(world, &id, "error_deleting");
        } else {
            world.cinder.volumes.remove(&id);
        }
    });
}

/// Rejects volume actions that are only for administrators.
pub(super) fn administrators(call: Call<'_>, action: &str) -> Result<(), Refusal> {
    admin_only(call.caller, &format!("volume_extension:volume_admin_actions:{action}"))
}
