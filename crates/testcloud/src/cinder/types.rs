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
