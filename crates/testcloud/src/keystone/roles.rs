//! Roles and role assignments.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::tokens::Caller;
use super::{admin_only, list, member, need, not_found, page, view};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row};

/// The target of a role assignment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Target {
    Project(String),
    Domain(String),
    System,
}

/// The IDs of a user's roles on a target, including implied ones (admin implies member, which implies reader).
pub(super) fn effective(world: &CloudState, user: &str, target: &Target) -> Vec<String> {
    let start = (user.to_owned(), target.clone(), String::new());
    let held = world.keystone.assignments.range(start..).take_while(|(u, t, _)| u == user && t == target);
    let mut roles: Vec<String> = held.map(|(_, _, role)| role.clone()).collect();
    for (role, implied) in [("admin", "member"), ("member", "reader")] {
        let id = |name: &str| world.keystone.roles.by("name", name).next().map(|row| row.text("id").to_owned());
        if let (Some(role), Some(implied)) = (id(role), id(implied))
            && roles.contains(&role)
            && !roles.contains(&implied)
        {
            roles.push(implied);
        }
    }
    roles
}

/// Assigns a role by name, during setup.
pub(crate) fn grant(world: &mut CloudState, user: &str, target: Target, role: &str) {
    if let Some(role) = world.keystone.roles.by("name", role).next().map(|row| row.text("id").to_owned()) {
        world.keystone.assignments.insert((user.to_owned(), target, role));
    }
}

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            admin_only(caller, "list_roles")?;
            Ok(list(world, request, "roles", &world.keystone.roles, &["name", "domain_id"]))
        }
        ("GET", [id]) => {
            admin_only(caller, "get_role")?;
            let row = world.keystone.roles.get(id).ok_or_else(|| not_found("role", id))?;
            Ok(Reply::ok(json!({"role": view(world, "roles", row)})))
        }
        ("POST", []) => {
            admin_only(caller, "create_role")?;
            let body = member(request, "role")?;
            let name = need(&body, "name")?;
            let domain = body.get("domain_id").cloned().unwrap_or_default();
            if world.keystone.roles.by("name", &name).any(|row| row.get("domain_id") == Some(&domain)) {
                return Err(Refusal::conflict(format!(
                    "Conflict occurred attempting to store role - Duplicate entry found with name {name}."
                )));
            }
            let mut row = new_role(world, &name, body.get("description").cloned().unwrap_or_default());
            row.put("domain_id", domain);
            world.keystone.roles.insert(row.clone());
            Ok(Reply::created(json!({"role": view(world, "roles", &row)})))
        }
        ("PATCH", [id]) => {
            admin_only(caller, "update_role")?;
            let body = member(request, "role")?;
            let changed = world.keystone.roles.edit(id, |row| row.extend(body));
            changed.ok_or_else(|| not_found("role", id))?;
            let row = world.keystone.roles.get(id).ok_or_else(|| not_found("role", id))?;
            Ok(Reply::ok(json!({"role": view(world, "roles", row)})))
        }
        ("DELETE", [id]) => {
            admin_only(caller, "delete_role")?;
            world.keystone.roles.remove(id).ok_or_else(|| not_found("role", id))?;
            world.keystone.assignments.retain(|(_, _, role)| role != id);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_route()),
    }
}

/// Creates a role.
pub(crate) fn new_role(world: &mut CloudState, name: &str, description: Value) -> Row {
    let mut row = Row::new();
    row.put("id", world.hex_id());
    row.put("name", name);
    row.put("domain_id", Value::Null);
    row.put("description", description);
    row.put("options", json!({}));
    world.keystone.roles.insert(row.clone());
    row
}

/// `…/users/{user}/roles[/{role}]` of a project, a domain or the system.
pub(super) fn grants(
    world: &mut CloudState,
    request: &ServiceCall,
    caller: &Caller,
    target: &Target,
    user: &str,
    rest: &[&str],
) -> Outcome {
    admin_only(caller, if request.method == "GET" { "list_grants" } else { "create_grant" })?;
    world.keystone.users.get(user).ok_or_else(|| not_found("user", user))?;
    match target {
        Target::Project(id) => drop(world.keystone.projects.get(id).ok_or_else(|| not_found("project", id))?.len()),
        Target::Domain(id) => drop(world.keystone.domains.get(id).ok_or_else(|| not_found("domain", id))?.len()),
        Target::System => {}
    }
    let [role] = rest else {
        let held: Vec<&String> = world
            .keystone
            .assignments
            .iter()
            .filter(|(u, t, _)| u == user && t == target)
            .map(|(_, _, role)| role)
            .collect();
        let rows = held.into_iter().filter_map(|id| world.keystone.roles.get(id)).map(|row| view(world, "roles", row));
        return Ok(Reply::ok(page(world, request, "roles", &rows.collect::<Vec<_>>())));
    };
    world.keystone.roles.get(role).ok_or_else(|| not_found("role", role))?;
    let entry = (user.to_owned(), target.clone(), (*role).to_owned());
    let has = world.keystone.assignments.contains(&entry);
    match request.method.as_str() {
        "PUT" => {
            world.keystone.assignments.insert(entry);
            Ok(Reply::empty(204))
        }
        "GET" | "HEAD" if has => Ok(Reply::empty(204)),
        "DELETE" if has => {
            world.keystone.assignments.remove(&entry);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::missing(format!(
            "Could not find role assignment with role: {role}, user or group: {user}, project, domain, or system: {}.",
            match target {
                Target::Project(id) | Target::Domain(id) => id,
                Target::System => "system",
            }
        ))),
    }
}

/// `GET /role_assignments`.
pub(super) fn assignments(world: &CloudState, request: &ServiceCall, caller: &Caller) -> Outcome {
    let own = request.param("user.id") == Some(caller.user.as_str());
    if !own {
        admin_only(caller, "list_role_assignments")?;
    }
    let keystone = &world.keystone;
    let names = request.param("include_names").is_some_and(|value| !matches!(value, "0" | "false" | "False"));
    let label = |kind: &str, id: &str| {
        let table = match kind {
            "user" => &keystone.users,
            "role" => &keystone.roles,
            "project" => &keystone.projects,
            _ => &keystone.domains,
        };
        let Some(row) = table.get(id).filter(|_| names) else { return json!({"id": id}) };
        let domain = keystone.domains.get(row.text("domain_id")).map(|domain| domain.text("name").to_owned());
        match domain {
            Some(name) => {
                json!({"id": id, "name": row.text("name"), "domain": {"id": row.text("domain_id"), "name": name}})
            }
            None => json!({"id": id, "name": row.text("name")}),
        }
    };
    let mut rows = Vec::new();
    for (user, target, role) in &keystone.assignments {
        let (kind, id) = match target {
            Target::Project(id) => ("project", id.as_str()),
            Target::Domain(id) => ("domain", id.as_str()),
            Target::System => ("system", ""),
        };
        let fits = |name: &str, value: &str| request.param(name).is_none_or(|wanted| wanted == value);
        let scoped = request.param("scope.project.id").is_none_or(|wanted| kind == "project" && wanted == id)
            && request.param("scope.domain.id").is_none_or(|wanted| kind == "domain" && wanted == id);
        if !(fits("user.id", user) && fits("role.id", role) && scoped) {
            continue;
        }
        let scope = if kind == "system" { json!({"system": {"all": true}}) } else { json!({kind: label(kind, id)}) };
        let link = format!("{}/identity/v3/{kind}s/{id}/users/{user}/roles/{role}", world.base);
        let mut row = Row::new();
        row.put("links", json!({"assignment": link}));
        row.put("scope", scope);
        row.put("user", label("user", user));
        row.put("role", label("role", role));
        rows.push(row);
    }
    Ok(Reply::ok(page(world, request, "role_assignments", &rows)))
}
