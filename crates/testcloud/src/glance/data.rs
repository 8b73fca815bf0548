//! Image data: upload, import, deactivation. Only its length is stored.

use serde_json::Value;

use super::{find, owned};
use crate::keystone::Caller;
use crate::reply::{Body, Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::Fields;

/// `PUT` and `GET /images/{id}/file`.
pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, id: &str) -> Outcome {
    match request.method.as_str() {
        "PUT" => {
            let row = owned(world, caller, id)?;
            if row.text("status") != "queued" {
                let message = format!("Image status transition from {} to saving is not allowed", row.text("status"));
                return Err(Refusal::conflict(message));
            }
            if row.text("disk_format").is_empty() || row.text("container_format").is_empty() {
                let message = "Properties disk_format, container_format must be set prior to saving data.";
                return Err(Refusal::bad(message));
            }
            activate(world, id, request.body.len());
            Ok(Reply::empty(204))
        }
        "GET" => {
            let row = find(world, caller, id)?;
            match row.text("status") {
                "active" => {}
                "deactivated" => {
                    return Err(Refusal::forbidden(
                        "The requested image has been deactivated. Image data download is forbidden.",
                    ));
                }
                _ => return Ok(Reply::empty(204)),
            }
            let size = usize::try_from(row.int("size")).unwrap_or_default();
            let mut reply = Reply::empty(200);
            // The data itself is not stored.
            reply.body = Body::Bytes(vec![0; size.min(1 << 20)].into());
            Ok(reply)
        }
        _ => Err(Refusal::no_method()),
    }
}

/// `POST /images/{id}/import`.
pub(super) fn import(world: &mut CloudState, request: &ServiceCall, caller: &Caller, id: &str) -> Outcome {
    let row = find(world, caller, id)?;
    if row.text("status") != "queued" {
        let message = format!("Image with status {} cannot be target for import", row.text("status"));
        return Err(Refusal::conflict(message));
    }
    let row = owned(world, caller, id)?;
    for field in ["container_format", "disk_format"] {
        if row.text(field).is_empty() {
            return Err(Refusal::conflict(format!("'{field}' needs to be set before import")));
        }
    }
    let body = request.json("Malformed JSON in request body.")?;
    let method = body.get("method").and_then(Value::as_object);
    let method = method.ok_or_else(|| Refusal::bad("Import request requires a 'method' field."))?;
    match method.text("name") {
        "web-download" => {
            let uri = method.text("uri");
            if uri.is_empty() {
                return Err(Refusal::bad("'uri' is required for import method 'web-download'"));
            }
            if !(uri.starts_with("http://") || uri.starts_with("https://")) {
                return Err(Refusal::bad(format!("Given uri is not allowed: {uri}")));
            }
        }
        "glance-direct" => {
            return Err(Refusal::conflict("'glance-direct' method cannot be used at image status 'queued'"));
        }
        other => return Err(Refusal::bad(format!("Unknown import method name '{other}'."))),
    }
    begin(world, id, 4096);
    Ok(Reply::empty(202))
}

/// Starts an import, which takes the build time.
pub(super) fn begin(world: &mut CloudState, id: &str, size: usize) {
    world.glance.images.edit(id, |row| row.put("status", "importing"));
    let id = id.to_owned();
    let fault = world.build_fault;
    world.after(world.options.build_time + fault.slower, move |world| {
        if fault.fails {
            // The behavior of the service after a failed download.
            world.glance.images.edit(&id, |row| row.put("status", "queued"));
        } else {
            activate(world, &id, size);
        }
    });
}

/// Sets the data of an image.
pub(crate) fn activate(world: &mut CloudState, id: &str, size: usize) {
    let now = world.stamp();
    let digest = |length: usize| format!("{size:0>length$x}");
    world.glance.images.edit(id, |row| {
        row.put("status", "active");
        row.put("size", size);
        row.put("virtual_size", size);
        row.put("checksum", digest(32));
        row.put("os_hash_algo", "sha512");
        row.put("os_hash_value", digest(128));
        row.put("updated_at", now);
    });
}

/// `POST /images/{id}/actions/deactivate` and `reactivate`.
pub(super) fn activation(world: &mut CloudState, caller: &Caller, id: &str, action: &str) -> Outcome {
    let status = owned(world, caller, id)?.text("status");
    if !matches!(status, "active" | "deactivated") {
        return Err(Refusal::forbidden(format!("Not allowed to {action} image in status '{status}'")));
    }
    let status = if action == "deactivate" { "deactivated" } else { "active" };
    world.glance.images.edit(id, |row| row.put("status", status));
    Ok(Reply::empty(204))
}
