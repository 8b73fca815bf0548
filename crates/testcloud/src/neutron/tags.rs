//! Tags of all object types.

use serde_json::{Value, json};

use super::{object, refusal};
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Table};

pub(super) fn route(
    world: &mut CloudState,
    request: &ServiceCall,
    caller: &Caller,
    many: &str,
    id: &str,
    rest: &[&str],
) -> Outcome {
    let missing = || refusal(404, "TagResourceNotFound", format!("Resource {many} {id} could not be found."));
    let table = table(world, many).ok_or_else(Refusal::no_route)?;
    let row = table.get(id).filter(|row| caller.owns(row.text("project_id"))).ok_or_else(missing)?;
    let tags = row.texts("tags");
    let unknown = |tag: &str| refusal(404, "TagNotFound", format!("Tag {tag} could not be found."));
    match (request.method.as_str(), rest) {
        ("GET", []) => Ok(Reply::ok(json!({"tags": tags}))),
        ("GET", [tag]) => {
            tags.iter().find(|own| own == tag).ok_or_else(|| unknown(tag))?;
            Ok(Reply::empty(204))
        }
        ("PUT", []) => {
            let body = object(request.json("Body contains invalid data")?);
            let Some(Value::Array(wanted)) = body.get("tags") else {
                return Err(refusal(400, "HTTPBadRequest", "Invalid tags body"));
            };
            let mut kept: Vec<Value> = Vec::new();
            for tag in wanted {
                let valid = tag.as_str().is_some_and(|tag| tag.chars().count() <= 60);
                if !valid {
                    let message = format!("Invalid input for operation: '{tag}' exceeds maximum length of 60.");
                    return Err(refusal(400, "InvalidInput", message));
                }
                if !kept.contains(tag) {
                    kept.push(tag.clone());
                }
            }
            table.edit(id, |row| row.put("tags", kept.clone()));
            Ok(Reply::ok(json!({"tags": kept})))
        }
        ("PUT", [tag]) => {
            if !tags.iter().any(|own| own == tag) {
                table.edit(id, |row| row.push("tags", *tag));
            }
            Ok(Reply::empty(201))
        }
        ("DELETE", []) => {
            table.edit(id, |row| row.put("tags", json!([])));
            Ok(Reply::empty(204))
        }
        ("DELETE", [tag]) => {
            tags.iter().find(|own| own == tag).ok_or_else(|| unknown(tag))?;
            table.edit(id, |row| row.drop_from("tags", |own| own == tag));
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_method()),
    }
}

fn table<'a>(world: &'a mut CloudState, many: &str) -> Option<&'a mut Table> {
    let neutron = &mut world.neutron;
    Some(match many {
        "networks" => &mut neutron.networks,
        "subnets" => &mut neutron.subnets,
        "ports" => &mut neutron.ports,
        "routers" => &mut neutron.routers,
        "floatingips" => &mut neutron.floating_ips,
        "security-groups" => &mut neutron.groups,
        "subnetpools" => &mut neutron.plain,
        _ => return None,
    })
}
