//! Groups, their members and roles.

use serde_json::json;

use super::tokens::Caller;
use super::{admin_only, member, need, not_found};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

const NOUN: &str = "identity/groups";

fn find<'a>(world: &'a CloudState, id: &str) -> Result<&'a Row, Refusal> {
    let row = world.nouns.rows.get(id).filter(|row| row.text("_noun") == NOUN);
    row.ok_or_else(|| not_found("group", id))
}

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    admin_only(caller, "manage_groups")?;
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            let fits = |row: &&Row| request.query.iter().all(|(key, value)| row.text(key) == value);
            let rows: Vec<Row> = world.nouns.rows.by("_noun", NOUN).filter(fits).map(public).collect();
            Ok(Reply::ok(json!({"groups": rows})))
        }
        ("GET", [id]) => Ok(Reply::ok(json!({"group": public(find(world, id)?)}))),
        ("POST", []) => {
            let body = member(request, "group")?;
            let name = need(&body, "name")?;
            let mut row = body;
            row.entry("domain_id").or_insert_with(|| json!("default"));
            let is_same = |other: &Row| other.text("name") == name && other.text("domain_id") == row.text("domain_id");
            if world.nouns.rows.by("_noun", NOUN).any(is_same) {
                return Err(Refusal::conflict("Conflict occurred attempting to store group - Duplicate Entry."));
            }
            row.put("id", world.hex_id());
            row.put("members", json!([]));
            row.put("grants", json!([]));
            row.put("_noun", NOUN);
            world.nouns.rows.insert(row.clone());
            Ok(Reply::created(json!({"group": public(&row)})))
        }
        ("PATCH", [id]) => {
            find(world, id)?;
            let body = member(request, "group")?;
            world.nouns.rows.edit(id, |row| row.extend(body));
            Ok(Reply::ok(json!({"group": public(find(world, id)?)})))
        }
        ("DELETE", [id]) => {
            find(world, id)?;
            world.nouns.rows.remove(id);
            Ok(Reply::empty(204))
        }
        ("PUT" | "DELETE" | "GET" | "HEAD", [id, "users", user]) => {
            world.keystone.users.get(user).ok_or_else(|| not_found("user", user))?;
            let has = find(world, id)?.texts("members").iter().any(|member| member == user);
            let user = (*user).to_owned();
            match (request.method.as_str(), has) {
                ("PUT", false) => drop(world.nouns.rows.edit(id, |row| row.push("members", user))),
                ("DELETE", true) => drop(world.nouns.rows.edit(id, |row| row.drop_from("members", |m| *m == user))),
                ("DELETE" | "GET" | "HEAD", false) => return Err(Refusal::missing("User not found in group")),
                _ => {}
            }
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_route()),
    }
}

/// A role of a group on a project or domain (`scope`).
pub(super) fn grant(
    world: &mut CloudState,
    request: &ServiceCall,
    caller: &Caller,
    scope: &str,
    group: &str,
    role: &str,
) -> Outcome {
    admin_only(caller, "create_grant")?;
    world.keystone.roles.get(role).ok_or_else(|| not_found("role", role))?;
    let entry = format!("{scope}/{role}");
    let has = find(world, group)?.texts("grants").contains(&entry);
    match (request.method.as_str(), has) {
        ("PUT", false) => drop(world.nouns.rows.edit(group, |row| row.push("grants", entry))),
        ("PUT" | "GET" | "HEAD", true) => {}
        ("DELETE", true) => drop(world.nouns.rows.edit(group, |row| row.drop_from("grants", |grant| *grant == entry))),
        _ => return Err(Refusal::missing("Could not find role assignment")),
    }
    Ok(Reply::empty(204))
}
