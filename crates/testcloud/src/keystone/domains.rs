//! Domains.

use serde_json::{Value, json};

use super::tokens::Caller;
use super::{admin_only, list, member, need, not_found, view};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row};

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            admin_only(caller, "list_domains")?;
            Ok(list(world, request, "domains", &world.keystone.domains, &["name", "enabled"]))
        }
        ("GET", [id]) => {
            admin_only(caller, "get_domain")?;
            let row = world.keystone.domains.get(id).ok_or_else(|| not_found("domain", id))?;
            Ok(Reply::ok(json!({"domain": view(world, "domains", row)})))
        }
        ("POST", []) => {
            admin_only(caller, "create_domain")?;
            let body = member(request, "domain")?;
            let name = need(&body, "name")?;
            if world.keystone.domains.by("name", &name).next().is_some() {
                return Err(Refusal::conflict(format!(
                    "Conflict occurred attempting to store project - it is not permitted to have two projects acting as \
                     domains with the same name: {name}."
                )));
            }
            let id = world.hex_id();
            let mut row = new_domain(&id, &name, body.text("description"));
            row.put("enabled", body.get("enabled").and_then(Value::as_bool).unwrap_or(true));
            world.keystone.domains.insert(row.clone());
            Ok(Reply::created(json!({"domain": view(world, "domains", &row)})))
        }
        ("PATCH", [id]) => {
            admin_only(caller, "update_domain")?;
            let body = member(request, "domain")?;
            world.keystone.domains.edit(id, |row| row.extend(body)).ok_or_else(|| not_found("domain", id))?;
            let row = world.keystone.domains.get(id).ok_or_else(|| not_found("domain", id))?;
            Ok(Reply::ok(json!({"domain": view(world, "domains", row)})))
        }
        ("DELETE", [id]) => {
            admin_only(caller, "delete_domain")?;
            let row = world.keystone.domains.get(id).ok_or_else(|| not_found("domain", id))?;
            if row.flag("enabled") {
                return Err(Refusal::forbidden("Cannot delete a domain that is enabled, please disable it first."));
            }
            world.keystone.domains.remove(id);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_route()),
    }
}

/// A domain's row.
pub(crate) fn new_domain(id: &str, name: &str, description: &str) -> Row {
    let mut row = Row::new();
    row.put("id", id);
    row.put("name", name);
    row.put("description", description);
    row.put("enabled", true);
    row.put("tags", Value::Array(Vec::new()));
    row.put("options", json!({}));
    row
}
