//! Members of shared images.

use serde_json::{Value, json};

use super::find;
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row};

pub(super) fn route(
    world: &mut CloudState,
    request: &ServiceCall,
    caller: &Caller,
    id: &str,
    rest: &[&str],
) -> Outcome {
    let unknown = |_| Refusal::missing(format!("Image {id} not found."));
    let row = find(world, caller, id).map_err(unknown)?;
    if row.text("visibility") != "shared" {
        let message = format!("Not allowed to list members for image {id}: Only shared images have members.");
        return Err(Refusal::forbidden(message));
    }
    let owner = caller.owns(row.text("owner"));
    let members = row.list("_members").to_vec();
    let position =
        |project: &str| members.iter().position(|own| own.get("member_id").and_then(Value::as_str) == Some(project));
    let missing =
        |project: &str| Refusal::missing(format!("{project} not found in the member list of the image {id}."));
    let store =
        |world: &mut CloudState, members: Vec<Value>| world.glance.images.edit(id, |row| row.put("_members", members));
    match (request.method.as_str(), rest) {
        ("GET", []) => Ok(Reply::ok(json!({"members": members, "schema": "/v2/schemas/members"}))),
        ("GET", [project]) => {
            let at = position(project).ok_or_else(|| missing(project))?;
            Ok(Reply::ok(members.get(at).cloned().unwrap_or_default()))
        }
        ("POST", []) if owner => {
            let body = request.json("Malformed JSON in request body.")?;
            let project = body.get("member").and_then(Value::as_str).unwrap_or_default();
            if project.is_empty() {
                return Err(Refusal::bad("Member to be added not specified"));
            }
            if position(project).is_some() {
                return Err(Refusal::conflict(format!("Image member {project} already exists for image {id}")));
            }
            let member = new_member(world, id, project);
            let mut members = members;
            members.push(member.clone());
            store(world, members);
            Ok(Reply::ok(member))
        }
        ("PUT", [project]) if caller.project == *project => {
            let body = request.json("Malformed JSON in request body.")?;
            let status = body.get("status").cloned().unwrap_or_default();
            if !status.as_str().is_some_and(|status| matches!(status, "pending" | "accepted" | "rejected")) {
                return Err(Refusal::bad("Status not specified"));
            }
            let at = position(project).ok_or_else(|| missing(project))?;
            let mut members = members;
            let member = members.get_mut(at).ok_or_else(|| missing(project))?;
            member["status"] = status;
            let seen = member.clone();
            store(world, members);
            Ok(Reply::ok(seen))
        }
        ("DELETE", [project]) if owner => {
            let at = position(project).ok_or_else(|| missing(project))?;
            let mut members = members;
            members.remove(at);
            store(world, members);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::forbidden("You are not authorized to complete this action.")),
    }
}

fn new_member(world: &CloudState, image: &str, project: &str) -> Value {
    let now = world.stamp();
    let mut row = Row::new();
    row.put("member_id", project);
    row.put("image_id", image);
    row.put("status", "pending");
    row.put("created_at", now.clone());
    row.put("updated_at", now);
    row.put("schema", "/v2/schemas/member");
    Value::Object(row)
}
