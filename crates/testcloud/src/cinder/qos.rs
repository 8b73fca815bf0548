//! QoS specs.

use serde_json::{Value, json};

use super::{Call, admin_only};
use crate::reply::{Outcome, Refusal, Reply};
use crate::state::CloudState;
use crate::table::{Fields, Row};

const NOUN: &str = "volume/qos-specs";

fn find<'a>(world: &'a CloudState, id: &str) -> Result<&'a Row, Refusal> {
    let row = world.nouns.rows.get(id).filter(|row| row.text("_noun") == NOUN);
    row.ok_or_else(|| Refusal::missing(format!("No such qos spec {id}.")))
}

fn show(row: &Row) -> Value {
    json!({"id": row.text("id"), "name": row.text("name"), "consumer": "back-end", "specs": row.get("specs")})
}

pub(super) fn route(world: &mut CloudState, call: Call<'_>, rest: &[&str]) -> Outcome {
    admin_only(call.caller, "volume_extension:qos_specs_manage")?;
    match (call.request.method.as_str(), rest) {
        ("GET", []) => {
            let rows: Vec<Value> = world.nouns.rows.by("_noun", NOUN).map(show).collect();
            Ok(Reply::ok(json!({"qos_specs": rows})))
        }
        ("GET", [id]) => Ok(Reply::ok(json!({"qos_specs": show(find(world, id)?)}))),
        ("POST", []) => {
            let mut specs = call.request.member("qos_specs")?;
            let name = specs.remove("name").unwrap_or_default();
            if world.nouns.rows.by("_noun", NOUN).any(|row| row.get("name") == Some(&name)) {
                return Err(Refusal::conflict(format!("Failed to create qos specs {name}: it exists.")));
            }
            let mut row = Row::new();
            row.put("id", world.uuid());
            row.put("name", name);
            row.put("specs", specs);
            row.put("_noun", NOUN);
            world.nouns.rows.insert(row.clone());
            Ok(Reply::ok(json!({"qos_specs": show(&row)})))
        }
        ("PUT", [id, rest @ ..]) => {
            let mut specs = find(world, id)?.get("specs").and_then(Value::as_object).cloned().unwrap_or_default();
            if rest.is_empty() {
                specs.extend(call.request.member("qos_specs")?);
            } else {
                let body = call.request.json("Malformed request body")?;
                for key in body["keys"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                    specs.remove(key).ok_or_else(|| Refusal::missing(format!("QoS specs {id} has no spec {key}.")))?;
                }
            }
            world.nouns.rows.edit(id, |row| row.put("specs", specs));
            Ok(Reply::ok(json!({"qos_specs": find(world, id)?.get("specs")})))
        }
        ("GET", [id, "associations"]) => {
            find(world, id)?;
            let types = world.cinder.types.iter().filter(|row| row.text("qos_specs_id") == *id);
            let types = types
                .map(|row| json!({"association_type": "volume_type", "id": row.text("id"), "name": row.text("name")}));
            Ok(Reply::ok(json!({"qos_associations": (types.collect::<Vec<_>>())})))
        }
        ("GET", [id, action @ ("associate" | "disassociate" | "disassociate_all")]) => {
            find(world, id)?;
            let wanted = call.request.param("vol_type_id").unwrap_or_default().to_owned();
            let all: Vec<String> = world.cinder.types.iter().map(|row| row.text("id").to_owned()).collect();
            if *action != "disassociate_all" && !all.contains(&wanted) {
                return Err(Refusal::missing(format!("Volume type {wanted} could not be found.")));
            }
            for one in all.iter().filter(|one| *action == "disassociate_all" || **one == wanted) {
                world.cinder.types.edit(one, |row| match *action {
                    "associate" => row.put("qos_specs_id", *id),
                    _ if row.text("qos_specs_id") == *id => drop(row.remove("qos_specs_id")),
                    _ => {}
                });
            }
            Ok(Reply::empty(202))
        }
        ("DELETE", [id]) => {
            find(world, id)?;
            if world.cinder.types.iter().any(|row| row.text("qos_specs_id") == *id) {
                return Err(Refusal::bad(format!("QoS Specs {id} is still associated with entities.")));
            }
            world.nouns.rows.remove(id);
            Ok(Reply::empty(202))
        }
        _ => Err(Refusal::no_route()),
    }
}
