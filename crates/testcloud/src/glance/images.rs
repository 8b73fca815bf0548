//! Images.

use serde_json::{Value, json};

use super::{find, owned, sees};
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::{ServiceCall, python};
use crate::state::{CloudState, is_uuid};
use crate::table::{Fields, Row, public};

pub(super) const DISK_FORMATS: [&str; 11] =
    ["ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "iso", "ploop"];
pub(super) const CONTAINER_FORMATS: [&str; 8] = ["ami", "ari", "aki", "bare", "ovf", "ova", "docker", "compressed"];
const VISIBILITIES: [&str; 4] = ["community", "public", "private", "shared"];
const READ_ONLY: [&str; 15] = [
    "status",
    "checksum",
    "os_hash_algo",
    "os_hash_value",
    "size",
    "virtual_size",
    "created_at",
    "updated_at",
    "self",
    "file",
    "schema",
    "direct_url",
    "stores",
    "locations",
    "first",
];

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    match (request.method.as_str(), rest) {
        ("GET", []) => list(world, request, caller),
        ("GET", [id]) => Ok(Reply::ok(Value::Object(show(find(world, caller, id)?)))),
        ("POST", []) => create(world, request, caller),
        ("PATCH", [id]) => patch(world, request, caller, id),
        ("DELETE", [id]) => {
            let unseen = |_| Refusal::missing(format!("Failed to find image {id} to delete"));
            find(world, caller, id).map_err(unseen)?;
            let row = owned(world, caller, id)?;
            if row.flag("protected") {
                return Err(Refusal::forbidden(format!("Image {id} is protected and cannot be deleted.")));
            }
            let used = world
                .nova
                .servers
                .iter()
                .any(|server| server.text("_image") == *id && server.text("status") == "BUILD");
            if used {
                let message = format!("Image {id} could not be deleted because it is in use: the image is being used.");
                return Err(Refusal::conflict(message));
            }
            world.glance.images.remove(id);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_method()),
    }
}

pub(super) fn show(row: &Row) -> Row {
    let mut seen = public(row);
    let id = row.text("id");
    seen.put("self", format!("/v2/images/{id}"));
    seen.put("file", format!("/v2/images/{id}/file"));
    seen.put("schema", "/v2/schemas/image");
    seen
}

fn list(world: &CloudState, request: &ServiceCall, caller: &Caller) -> Outcome {
    if let Some(visibility) = request.param("visibility").filter(|visibility| *visibility != "all")
        && !VISIBILITIES.contains(&visibility)
    {
        return Err(Refusal::bad(format!("Invalid visibility value: {visibility}")));
    }
    let fits = |row: &&Row| {
        let wanted = request.query.iter().all(|(name, value)| match name.as_str() {
            "limit" | "marker" | "sort" | "sort_key" | "sort_dir" | "member_status" => true,
            "visibility" if value == "all" => true,
            "tag" => row.texts("tags").contains(value),
            "os_hidden" | "protected" => row.flag(name) == value.eq_ignore_ascii_case("true"),
            name => value
                .strip_prefix("in:")
                .unwrap_or(value)
                .split(',')
                .any(|value| row.text(name) == value.trim_matches('"')),
        });
        // Community images are listed only on request, and those of other projects only for administrators.
        let community = row.text("visibility") == "community" && row.text("owner") != caller.project;
        wanted && sees(caller, row) && (!community || request.param("visibility").is_some())
    };
    let mut rows: Vec<&Row> = world.glance.images.iter().rev().filter(fits).collect();
    if let Some(marker) = request.param("marker") {
        let at = rows.iter().position(|row| row.text("id") == marker);
        let at = at.ok_or_else(|| Refusal::bad("Marker could not be found"))?;
        rows.drain(..=at);
    }
    let limit = match request.param("limit") {
        Some(text) => text.parse::<usize>().map_err(|_| Refusal::bad("limit param must be an integer"))?,
        None => 25,
    };
    let more = rows.len() > limit;
    rows.truncate(limit);
    let mut reply = json!({"first": "/v2/images", "schema": "/v2/schemas/images"});
    if more && let Some(last) = rows.last() {
        let rest = request.query.iter().filter(|(name, _)| name != "marker");
        let query = rest.fold(String::new(), |query, (name, value)| query + name + "=" + value + "&");
        reply["next"] = format!("/v2/images?{query}marker={}", last.text("id")).into();
    }
    reply["images"] = rows.into_iter().map(|row| Value::Object(show(row))).collect();
    Ok(Reply::ok(reply))
}

fn broken(reason: &str) -> Refusal {
    Refusal::bad(format!("Provided object does not match schema 'image': {reason}"))
}

/// Checks an attribute of an image.
fn check(name: &str, value: &Value) -> Result<(), Refusal> {
    let one_of = |allowed: &[&str]| {
        let known = value.is_null() || value.as_str().is_some_and(|text| allowed.contains(&text));
        let list: Vec<String> = allowed.iter().map(|name| format!("'{name}'")).collect();
        if known {
            Ok(())
        } else {
            Err(broken(&format!("{} is not one of [None, {}]", python(value), list.join(", "))))
        }
    };
    let fits = |fits: bool, kind: &str| {
        if fits { Ok(()) } else { Err(broken(&format!("{} is not of type {kind}", python(value)))) }
    };
    match name {
        "id" => {
            if value.as_str().is_some_and(is_uuid) {
                return Ok(());
            }
            let pattern = "^([0-9a-fA-F]){8}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){12}$";
            Err(broken(&format!("{} does not match '{pattern}'", python(value))))
        }
        "disk_format" => one_of(&DISK_FORMATS),
        "container_format" => one_of(&CONTAINER_FORMATS),
        "visibility" => {
            if value.as_str().is_some_and(|text| VISIBILITIES.contains(&text)) {
                return Ok(());
            }
            Err(broken(&format!("{} is not one of ['community', 'public', 'private', 'shared']", python(value))))
        }
        "min_disk" | "min_ram" => {
            fits(value.is_i64() || value.is_u64(), "'integer'")?;
            let small = value.as_i64().is_some_and(|number| number < 0);
            if small { Err(broken(&format!("{value} is less than the minimum of 0"))) } else { Ok(()) }
        }
        "protected" | "os_hidden" => fits(value.is_boolean(), "'boolean'"),
        "tags" => fits(value.as_array().is_some_and(|tags| tags.iter().all(Value::is_string)), "'array'"),
        _ => fits(value.is_null() || value.is_string(), "'null', 'string'"),
    }
}

fn check_visibility(caller: &Caller, visibility: &str) -> Result<(), Refusal> {
    if visibility == "public" && !caller.admin {
        return Err(Refusal::forbidden("You are not authorized to complete publicize_image action."));
    }
    Ok(())
}

fn create(world: &mut CloudState, request: &ServiceCall, caller: &Caller) -> Outcome {
    let Value::Object(body) = request.json("Malformed JSON in request body.")? else {
        return Err(broken("the body is not an object"));
    };
    for (name, value) in &body {
        if READ_ONLY.contains(&name.as_str()) {
            return Err(Refusal::forbidden(format!("Attribute '{name}' is read-only.")));
        }
        check(name, value)?;
    }
    check_visibility(caller, body.text("visibility"))?;
    let owner = match body.text("owner") {
        "" => caller.project.clone(),
        other if caller.owns(other) => other.to_owned(),
        other => {
            let message = format!("You are not permitted to create images owned by '{other}'.");
            return Err(Refusal::forbidden(message));
        }
    };
    if !body.text("id").is_empty() && world.glance.images.get(body.text("id")).is_some() {
        let message = format!("Image ID {} already exists!", body.text("id"));
        return Err(Refusal::conflict(message));
    }
    let id = new_image(world, "", &owner);
    let mut row = world.glance.images.remove(&id).unwrap_or_default();
    row.put("name", Value::Null);
    row.put("visibility", "shared");
    for (name, value) in body.into_iter().filter(|(name, _)| name != "owner") {
        row.put(&name, value);
    }
    let id = row.text("id").to_owned();
    let seen = show(&row);
    world.glance.images.insert(row);
    let link = format!("{}/image/v2/images/{id}", world.base);
    let methods = "glance-direct,web-download,copy-image";
    Ok(Reply::created(Value::Object(seen)).header("location", link).header("openstack-image-import-methods", methods))
}

/// Creates an image without data and returns its ID.
pub(crate) fn new_image(world: &mut CloudState, name: &str, owner: &str) -> String {
    let (id, now) = (world.uuid(), world.stamp());
    let mut row = Row::new();
    row.put("name", name);
    row.put("disk_format", Value::Null);
    row.put("container_format", Value::Null);
    row.put("visibility", "shared");
    row.put("size", Value::Null);
    row.put("virtual_size", Value::Null);
    row.put("status", "queued");
    row.put("checksum", Value::Null);
    row.put("protected", false);
    row.put("min_ram", 0);
    row.put("min_disk", 0);
    row.put("owner", owner);
    row.put("os_hidden", false);
    row.put("os_hash_algo", Value::Null);
    row.put("os_hash_value", Value::Null);
    row.put("id", id.clone());
    row.put("created_at", now.clone());
    row.put("updated_at", now);
    row.put("tags", json!([]));
    world.glance.images.insert(row);
    id
}

/// The snapshot image that Nova creates of a server.
pub(crate) fn snapshot_of(world: &mut CloudState, caller: &Caller, server: &Row, name: &str) -> String {
    let id = new_image(world, name, &caller.project);
    world.glance.images.edit(&id, |row| {
        row.put("visibility", "private");
        row.put("disk_format", "raw");
        row.put("container_format", "bare");
        row.put("instance_uuid", server.text("id"));
        row.put("image_type", "snapshot");
    });
    super::data::begin(world, &id, 4096);
    id
}

/// `PATCH`: JSON patch of single attributes.
fn patch(world: &mut CloudState, request: &ServiceCall, caller: &Caller, id: &str) -> Outcome {
    let row = owned(world, caller, id)?;
    let Value::Array(changes) = request.json("Malformed JSON in request body.")? else {
        return Err(Refusal::bad("ServiceCall body must be a JSON array of operation objects."));
    };
    let mut row = row.clone();
    for change in &changes {
        let field = |name: &str| change.get(name).and_then(Value::as_str).unwrap_or_default();
        let name = field("path").trim_start_matches('/').to_owned();
        if READ_ONLY.contains(&name.as_str()) || name == "id" || name == "owner" && !caller.admin {
            return Err(Refusal::forbidden(format!("Attribute '{name}' is read-only.")));
        }
        let value = change.get("value").cloned().unwrap_or_default();
        match field("op") {
            "add" => {
                check(&name, &value)?;
                row.put(&name, value);
            }
            "replace" => {
                if !row.contains_key(&name) {
                    return Err(Refusal::conflict(format!("Property {name} does not exist.")));
                }
                check(&name, &value)?;
                if name == "visibility" {
                    check_visibility(caller, value.as_str().unwrap_or_default())?;
                }
                row.put(&name, value);
            }
            "remove" => {
                row.remove(&name).ok_or_else(|| Refusal::conflict(format!("Property {name} does not exist.")))?;
            }
            other => return Err(Refusal::bad(format!("Operations must be add, replace or remove, not '{other}'."))),
        }
    }
    row.put("updated_at", world.stamp());
    let seen = show(&row);
    world.glance.images.insert(row);
    Ok(Reply::ok(Value::Object(seen)))
}

/// `PUT` and `DELETE /images/{id}/tags/{tag}`.
pub(super) fn tag(world: &mut CloudState, request: &ServiceCall, caller: &Caller, id: &str, tag: &str) -> Outcome {
    let has = owned(world, caller, id)?.texts("tags").iter().any(|own| own == tag);
    match (request.method.as_str(), has) {
        ("PUT", false) => world.glance.images.edit(id, |row| row.push("tags", tag)),
        ("PUT", true) => None,
        ("DELETE", true) => world.glance.images.edit(id, |row| row.drop_from("tags", |own| own == tag)),
        ("DELETE", false) => return Err(Refusal::missing(format!("Failed to find tag {tag} for image {id}"))),
        _ => return Err(Refusal::no_method()),
    };
    Ok(Reply::empty(204))
}
