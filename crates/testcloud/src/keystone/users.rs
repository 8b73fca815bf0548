//! Users.

use serde_json::{Value, json};

use super::roles::Target;
use super::tokens::{Caller, revoke_where};
use super::{admin_only, denied, list, member, need, not_found, page, view};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row};

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    let own = rest.first().is_some_and(|id| *id == caller.user);
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            admin_only(caller, "list_users")?;
            Ok(list(world, request, "users", &world.keystone.users, &["name", "domain_id", "enabled"]))
        }
        ("GET", [id]) => {
            if !(caller.admin || own) {
                return Err(denied("get_user"));
            }
            Ok(Reply::ok(json!({"user": show(world, id)?})))
        }
        ("GET", [id, "projects"]) => {
            if !(caller.admin || own) {
                return Err(denied("list_user_projects"));
            }
            world.keystone.users.get(id).ok_or_else(|| not_found("user", id))?;
            let held = world.keystone.assignments.iter().filter(|(user, _, _)| user == id);
            let mut ids: Vec<&String> = held
                .filter_map(|(_, target, _)| if let Target::Project(id) = target { Some(id) } else { None })
                .collect();
            ids.dedup();
            let rows = ids.into_iter().filter_map(|id| world.keystone.projects.get(id));
            let rows = rows.map(|row| view(world, "projects", row)).collect::<Vec<_>>();
            Ok(Reply::ok(page(world, request, "projects", &rows)))
        }
        ("GET", [_, "groups"]) => Ok(Reply::ok(page(world, request, "groups", &[]))),
        ("POST", []) => {
            admin_only(caller, "create_user")?;
            create(world, request)
        }
        ("PATCH", [id]) => {
            admin_only(caller, "update_user")?;
            let body = member(request, "user")?;
            let row = world.keystone.users.get(id).ok_or_else(|| not_found("user", id))?;
            if body.contains_key("name") && body.text("name") != row.text("name") {
                free_name(world, body.text("name"), row.text("domain_id"))?;
            }
            let ended = body.contains_key("password") || body.get("enabled") == Some(&Value::Bool(false));
            world.keystone.users.edit(id, |row| apply(row, body));
            if ended {
                revoke_where(world, |token| token.user == *id);
            }
            Ok(Reply::ok(json!({"user": show(world, id)?})))
        }
        ("POST", [id, "password"]) => {
            let body = member(request, "user")?;
            let row = world.keystone.users.get(id).ok_or_else(|| not_found("user", id))?;
            if row.text("_password") != body.text("original_password") {
                return Err(Refusal::unauthorized());
            }
            world.keystone.users.edit(id, |row| row.put("_password", body.text("password")));
            revoke_where(world, |token| token.user == *id);
            Ok(Reply::empty(204))
        }
        ("DELETE", [id]) => {
            admin_only(caller, "delete_user")?;
            world.keystone.users.remove(id).ok_or_else(|| not_found("user", id))?;
            world.keystone.assignments.retain(|(user, _, _)| user != id);
            let keys: Vec<String> =
                world.keystone.ec2.by("user_id", id).map(|row| row.text("access").to_owned()).collect();
            for key in keys {
                world.keystone.ec2.remove(&key);
            }
            revoke_where(world, |token| token.user == *id);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_route()),
    }
}

fn show(world: &CloudState, id: &str) -> Result<Row, Refusal> {
    let row = world.keystone.users.get(id).ok_or_else(|| not_found("user", id))?;
    Ok(view(world, "users", row))
}

fn free_name(world: &CloudState, name: &str, domain: &str) -> Result<(), Refusal> {
    if world.keystone.users.by("name", name).any(|row| row.text("domain_id") == domain) {
        return Err(Refusal::conflict(format!(
            "Conflict occurred attempting to store user - Duplicate entry found with name {name} at domain ID {domain}."
        )));
    }
    Ok(())
}

/// Updates a user from a body; the password is not shown.
fn apply(row: &mut Row, body: Row) {
    for (field, value) in body {
        match field.as_str() {
            "password" => row.put("_password", value),
            "id" | "domain_id" => {}
            _ => row.put(&field, value),
        }
    }
}

fn create(world: &mut CloudState, request: &ServiceCall) -> Outcome {
    let body = member(request, "user")?;
    let name = need(&body, "name")?;
    let domain = Some(body.text("domain_id")).filter(|id| !id.is_empty()).unwrap_or("default").to_owned();
    world.keystone.domains.get(&domain).ok_or_else(|| not_found("domain", &domain))?;
    let project = body.text("default_project_id");
    if !project.is_empty() {
        world.keystone.projects.get(project).ok_or_else(|| not_found("project", project))?;
    }
    free_name(world, &name, &domain)?;
    let id = new_user(world, &name, &domain, "");
    world.keystone.users.edit(&id, |row| apply(row, body));
    Ok(Reply::created(json!({"user": show(world, &id)?})))
}

/// Creates a user and returns its ID. Without a password it cannot log in.
pub(crate) fn new_user(world: &mut CloudState, name: &str, domain: &str, password: &str) -> String {
    let id = world.hex_id();
    let mut row = Row::new();
    row.put("id", id.clone());
    row.put("name", name);
    row.put("domain_id", domain);
    row.put("enabled", true);
    row.put("password_expires_at", Value::Null);
    row.put("options", json!({}));
    row.put("_password", password);
    world.keystone.users.insert(row);
    id
}
