//! Application credentials.

use serde_json::{Value, json};

use super::roles::{Target, effective};
use super::tokens::{Caller, revoke_where};
use super::{denied, member, need, not_found, page, view};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row};

pub(super) fn route(
    world: &mut CloudState,
    request: &ServiceCall,
    caller: &Caller,
    user: &str,
    rest: &[&str],
) -> Outcome {
    let own = caller.user == user;
    let allow = |may: bool, action: &str| if may { Ok(()) } else { Err(denied(action)) };
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            allow(own || caller.admin, "list_application_credentials")?;
            let fits = |row: &&Row| request.param("name").is_none_or(|name| row.text("name") == name);
            let rows: Vec<Row> =
                world.keystone.credentials.by("_user_id", user).filter(fits).map(|row| show(world, row)).collect();
            Ok(Reply::ok(page(world, request, "application_credentials", &rows)))
        }
        ("GET", [id]) => {
            allow(own || caller.admin, "get_application_credential")?;
            let row = world.keystone.credentials.get(id).ok_or_else(|| not_found("application credential", id))?;
            Ok(Reply::ok(json!({"application_credential": show(world, row)})))
        }
        ("POST", []) => {
            allow(own, "create_application_credential")?;
            caller.unrestricted("additional application credentials")?;
            create(world, request, caller)
        }
        ("DELETE", [id]) => {
            allow(own || caller.admin, "delete_application_credential")?;
            caller.unrestricted("additional application credentials")?;
            world.keystone.credentials.remove(id).ok_or_else(|| not_found("application credential", id))?;
            revoke_where(world, |token| token.credential.as_deref() == Some(*id));
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_route()),
    }
}

fn show(world: &CloudState, row: &Row) -> Row {
    let mut seen = view(world, &format!("users/{}/application_credentials", row.text("_user_id")), row);
    let roles = row.texts("_roles");
    let roles = roles.iter().filter_map(|id| world.keystone.roles.get(id));
    let roles = roles.map(|role| json!({"id": role.text("id"), "name": role.text("name"), "domain_id": null}));
    seen.put("roles", roles.collect::<Vec<_>>());
    seen
}

fn create(world: &mut CloudState, request: &ServiceCall, caller: &Caller) -> Outcome {
    let body = member(request, "application_credential")?;
    let name = need(&body, "name")?;
    if world.keystone.credentials.by("_user_id", &caller.user).any(|row| row.text("name") == name) {
        return Err(Refusal::conflict(format!(
            "Conflict occurred attempting to store application_credential - Duplicate entry found with name {name}."
        )));
    }
    let held = effective(world, &caller.user, &Target::Project(caller.project.clone()));
    let wanted = body.list("roles").iter().filter_map(Value::as_object).map(|role| {
        let row = if role.contains_key("id") {
            world.keystone.roles.get(role.text("id"))
        } else {
            world.keystone.roles.by("name", role.text("name")).next()
        };
        row.map(|row| row.text("id").to_owned()).filter(|id| held.contains(id))
    });
    let wanted: Option<Vec<String>> = wanted.collect();
    let invalid = || Refusal::bad("Invalid application credential: Could not find role assignment");
    let roles = if body.contains_key("roles") { wanted.ok_or_else(invalid)? } else { held };
    let secret =
        Some(body.text("secret")).filter(|secret| !secret.is_empty()).map_or_else(|| world.hex_id(), str::to_owned);
    let mut row = Row::new();
    row.put("id", world.hex_id());
    row.put("name", name);
    row.put("description", body.get("description").cloned().unwrap_or_default());
    row.put("project_id", caller.project.clone());
    row.put("expires_at", body.get("expires_at").cloned().unwrap_or_default());
    row.put("unrestricted", body.flag("unrestricted"));
    row.put("system", Value::Null);
    row.put("_user_id", caller.user.clone());
    row.put("_roles", roles);
    row.put("_secret", secret.clone());
    let mut seen = show(world, &row);
    seen.put("secret", secret);
    world.keystone.credentials.insert(row);
    Ok(Reply::created(json!({"application_credential": seen})))
}
