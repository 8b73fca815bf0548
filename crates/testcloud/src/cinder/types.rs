//! Volume types.

use serde_json::{Value, json};

use super::{Call, admin_only};
use crate::nova::{check_fields, name_field};
use crate::reply::{Outcome, Refusal, Reply};
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

/// The default volume type.
pub(super) const DEFAULT: &str = "fake";

pub(super) fn route(world: &mut CloudState, call: Call<'_>, rest: &[&str]) -> Outcome {
    let missing = |id: &str| Refusal::missing(format!("Volume type {id} could not be found."));
    match (call.request.method.as_str(), rest) {
        ("GET", []) => {
            let sees = |row: &&Row| call.caller.admin || row.flag("is_public");
            let rows: Vec<Row> = world.cinder.types.iter().filter(sees).map(public).collect();
            Ok(Reply::ok(json!({"volume_types": rows})))
        }
        ("GET", ["default"]) => {
            let row = world.cinder.types.by("name", DEFAULT).next().ok_or_else(|| missing("default"))?;
            Ok(Reply::ok(json!({"volume_type": public(row)})))
        }
        ("GET", [id]) => {
            let row = world.cinder.types.get(id).ok_or_else(|| missing(id))?;
            Ok(Reply::ok(json!({"volume_type": public(row)})))
        }
        ("POST", []) => {
            admin_only(call.caller, "volume_extension:type_create")?;
            let body = call.request.member("volume_type")?;
            let known = ["name", "description", "extra_specs", "os-volume-type-access:is_public"];
            check_fields("volume_type", &body, &known, &["name"])?;
            let name = name_field(&body, "name", 255)?;
            if world.cinder.types.by("name", &name).next().is_some() {
                return Err(Refusal::conflict(format!("Volume Type {name} already exists.")));
            }
            let id = new_type(world, &name);
            world.cinder.types.edit(&id, |row| {
                row.extend(body.clone());
                if let Some(public) = body.get("os-volume-type-access:is_public").and_then(Value::as_bool) {
                    row.put("is_public", public);
                }
            });
            let row = world.cinder.types.get(&id).ok_or_else(|| missing(&id))?;
            Ok(Reply::ok(json!({"volume_type": public(row)})))
        }
        ("DELETE", [id]) => {
            admin_only(call.caller, "volume_extension:type_delete")?;
            let name = world.cinder.types.get(id).ok_or_else(|| missing(id))?.text("name").to_owned();
            if world.cinder.volumes.iter().any(|row| row.text("volume_type") == name) {
                return Err(Refusal::bad("Target volume type is still in use."));
            }
            world.cinder.types.remove(id);
            Ok(Reply::empty(202))
        }
        ("GET", [id, "extra_specs"]) => {
            let row = world.cinder.types.get(id).ok_or_else(|| missing(id))?;
            Ok(Reply::ok(json!({"extra_specs": row.get("extra_specs")})))
        }
        ("POST", [id, "extra_specs"]) => {
            admin_only(call.caller, "volume_extension:types_extra_specs:create")?;
            let specs = call.request.member("extra_specs")?;
            let added = specs.clone();
            let edit = world.cinder.types.edit(id, |row| {
                if let Some(Value::Object(own)) = row.get_mut("extra_specs") {
                    own.extend(specs);
                }
            });
            edit.ok_or_else(|| missing(id))?;
            Ok(Reply::ok(json!({"extra_specs": added})))
        }
        ("PUT", [id]) => {
            admin_only(call.caller, "volume_extension:type_update")?;
            let body = call.request.member("volume_type")?;
            check_fields("volume_type", &body, &["name", "description", "is_public"], &[])?;
            world.cinder.types.edit(id, |row| row.extend(body)).ok_or_else(|| missing(id))?;
            let row = world.cinder.types.get(id).ok_or_else(|| missing(id))?;
            Ok(Reply::ok(json!({"volume_type": public(row)})))
        }
        ("DELETE", [id, "extra_specs", key]) => {
            let row = world.cinder.types.get(id).ok_or_else(|| missing(id))?;
            let mut specs = row.get("extra_specs").cloned().unwrap_or_default();
            let known = specs.as_object_mut().and_then(|specs| specs.remove(*key));
            known.ok_or_else(|| Refusal::missing(format!("Volume Type {id} has no extra specs with key {key}.")))?;
            world.cinder.types.edit(id, |row| row.put("extra_specs", specs));
            Ok(Reply::empty(202))
        }
        (_, [id, rest @ ..]) => {
            admin_only(call.caller, "volume_extension:type_update")?;
            world.cinder.types.get(id).ok_or_else(|| missing(id))?;
            parts(world, call, id, rest)
        }
        _ => Err(Refusal::no_route()),
    }
}

/// Access of projects, and encryption.
fn parts(world: &mut CloudState, call: Call<'_>, id: &str, rest: &[&str]) -> Outcome {
    let row = world.cinder.types.get(id).cloned().unwrap_or_default();
    match (call.request.method.as_str(), rest) {
        ("GET", ["os-volume-type-access"]) => {
            let entry = |project: &String| json!({"volume_type_id": id, "project_id": project});
            let access: Vec<Value> = row.texts("projects").iter().map(entry).collect();
            Ok(Reply::ok(json!({"volume_type_access": access})))
        }
        ("POST", ["action"]) => {
            let body = call.request.json("Malformed request body")?;
            let project = |action: &str| body[action]["project"].as_str().map(str::to_owned);
            let has = |project: &String| row.texts("projects").contains(project);
            match (project("addProjectAccess"), project("removeProjectAccess")) {
                (Some(project), _) if !row.flag("is_public") && !has(&project) => {
                    world.cinder.types.edit(id, |row| row.push("projects", project));
                }
                (Some(_), _) => return Err(Refusal::conflict("Volume type access exists.")),
                (_, Some(project)) if has(&project) => {
                    world.cinder.types.edit(id, |row| row.drop_from("projects", |own| *own == project));
                }
                _ => return Err(Refusal::missing("Volume type access not found.")),
            }
            Ok(Reply::empty(202))
        }
        ("GET", ["encryption"]) => Ok(Reply::ok(row.get("encryption").cloned().unwrap_or_else(|| json!({})))),
        ("POST", ["encryption"]) | ("PUT", ["encryption", "provider"]) => {
            let mut body = call.request.member("encryption")?;
            check_fields("encryption", &body, &["provider", "cipher", "key_size", "control_location"], &["provider"])?;
            if call.request.method == "POST" && row.contains_key("encryption") {
                return Err(Refusal::bad(format!("Volume type encryption for type {id} already exists.")));
            }
            if call.request.method == "PUT" && !row.contains_key("encryption") {
                return Err(Refusal::missing(format!("Volume type encryption for type {id} does not exist.")));
            }
            body.put("volume_type_id", id);
            world.cinder.types.edit(id, |row| row.put("encryption", Value::Object(body.clone())));
            Ok(Reply::ok(json!({"encryption": body})))
        }
        ("DELETE", ["encryption", "provider"]) if row.contains_key("encryption") => {
            world.cinder.types.edit(id, |row| row.remove("encryption"));
            Ok(Reply::empty(202))
        }
        ("DELETE", ["encryption", "provider"]) => Err(Refusal::missing("The encryption does not exist.")),
        _ => Err(Refusal::no_route()),
    }
}

/// The name of the type with an ID or name, or of the default type.
pub(super) fn resolve(world: &CloudState, wanted: &str) -> Result<String, Refusal> {
    if wanted.is_empty() {
        return Ok(DEFAULT.to_owned());
    }
    let types = &world.cinder.types;
    let row = types.get(wanted).or_else(|| types.by("name", wanted).next());
    let row = row.ok_or_else(|| Refusal::missing(format!("Volume type with name {wanted} could not be found.")))?;
    Ok(row.text("name").to_owned())
}

/// Creates a public type and returns its ID.
pub(crate) fn new_type(world: &mut CloudState, name: &str) -> String {
    let id = world.uuid();
    let mut row = Row::new();
    row.put("id", id.clone());
    row.put("name", name);
    row.put("is_public", true);
    row.put("description", Value::Null);
    row.put("extra_specs", json!({}));
    row.put("os-volume-type-access:is_public", true);
    world.cinder.types.insert(row);
    id
}
