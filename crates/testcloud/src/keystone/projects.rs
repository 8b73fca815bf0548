//! Projects.

use serde_json::{Value, json};

use super::roles::Target;
use super::tokens::Caller;
use super::{admin_only, denied, list, member, need, not_found, view};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row};

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            admin_only(caller, "list_projects")?;
            Ok(list(
                world,
                request,
                "projects",
                &world.keystone.projects,
                &["name", "domain_id", "parent_id", "enabled"],
            ))
        }
        ("GET", [id]) => {
            if !(caller.admin || caller.project == *id) {
                return Err(denied("get_project"));
            }
            let row = world.keystone.projects.get(id).ok_or_else(|| not_found("project", id))?;
            Ok(Reply::ok(json!({"project": view(world, "projects", row)})))
        }
        ("POST", []) => {
            admin_only(caller, "create_project")?;
            create(world, request)
        }
        ("PATCH", [id]) => {
            admin_only(caller, "update_project")?;
            let body = member(request, "project")?;
            let row = world.keystone.projects.get(id).ok_or_else(|| not_found("project", id))?;
            let domain = row.text("domain_id").to_owned();
            if body.get("domain_id").is_some_and(|value| *value != domain.as_str()) {
                return Err(Refusal::bad("Cannot change Domain ID"));
            }
            if body.contains_key("name") && body.text("name") != row.text("name") {
                free_name(world, body.text("name"), &domain)?;
            }
            world.keystone.projects.edit(id, |row| row.extend(body));
            let row = world.keystone.projects.get(id).ok_or_else(|| not_found("project", id))?;
            Ok(Reply::ok(json!({"project": view(world, "projects", row)})))
        }
        ("DELETE", [id]) => {
            admin_only(caller, "delete_project")?;
            if world.keystone.projects.by("parent_id", id).next().is_some() {
                return Err(Refusal::forbidden(format!(
                    "Cannot delete project {id} since it is not a leaf in the hierarchy. Use the cascade option if you \
                     want to delete a whole subtree."
                )));
            }
            world.keystone.projects.remove(id).ok_or_else(|| not_found("project", id))?;
            let target = Target::Project((*id).to_owned());
            world.keystone.assignments.retain(|(_, held, _)| *held != target);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_route()),
    }
}

fn free_name(world: &CloudState, name: &str, domain: &str) -> Result<(), Refusal> {
    let taken = world.keystone.projects.by("name", name).find(|row| row.text("domain_id") == domain);
    taken.map_or(Ok(()), |row| {
        Err(Refusal::conflict(format!(
            "Conflict occurred attempting to store project - it is not permitted to have two projects with either the \
             same name or same id in the same domain: name is {name}, project id {}.",
            row.text("id")
        )))
    })
}

fn create(world: &mut CloudState, request: &ServiceCall) -> Outcome {
    let body = member(request, "project")?;
    let name = need(&body, "name")?;
    if name.chars().count() > 64 {
        return Err(Refusal::bad(format!("'{name}' is too long")));
    }
    if body.get("enabled").is_some_and(|value| !value.is_boolean()) {
        return Err(Refusal::bad("Invalid input for field 'enabled'."));
    }
    let domain = Some(body.text("domain_id")).filter(|id| !id.is_empty()).unwrap_or("default").to_owned();
    world.keystone.domains.get(&domain).ok_or_else(|| not_found("domain", &domain))?;
    let parent = Some(body.text("parent_id")).filter(|id| !id.is_empty()).unwrap_or(&domain).to_owned();
    if parent != domain {
        world.keystone.projects.get(&parent).ok_or_else(|| not_found("project", &parent))?;
    }
    free_name(world, &name, &domain)?;
    let id = new_project(world, &name, &domain);
    world.keystone.projects.edit(&id, |row| {
        row.put("parent_id", parent);
        for field in ["description", "enabled", "tags"] {
            if let Some(value) = body.get(field).filter(|value| !value.is_null()) {
                row.put(field, value.clone());
            }
        }
        for (field, value) in body.iter().filter(|(field, _)| !KNOWN.contains(&field.as_str())) {
            row.put(field, value.clone());
        }
    });
    let row = world.keystone.projects.get(&id).ok_or_else(|| not_found("project", &id))?;
    Ok(Reply::created(json!({"project": view(world, "projects", row)})))
}

/// The attributes of a project that Keystone knows; others are stored unchanged.
const KNOWN: [&str; 8] = ["name", "domain_id", "parent_id", "description", "enabled", "tags", "is_domain", "options"];

/// Creates a project and returns its ID.
pub(crate) fn new_project(world: &mut CloudState, name: &str, domain: &str) -> String {
    let id = world.hex_id();
    let mut row = Row::new();
    row.put("id", id.clone());
    row.put("name", name);
    row.put("domain_id", domain);
    row.put("description", "");
    row.put("enabled", true);
    row.put("parent_id", domain);
    row.put("is_domain", false);
    row.put("tags", Value::Array(Vec::new()));
    row.put("options", json!({}));
    world.keystone.projects.insert(row);
    id
}
