//! Trusts (`/OS-TRUST/trusts`): a trustor delegates roles in a project to a trustee.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::roles::{Target, effective};
use super::tokens::{Caller, Scope, revoke_where};
use super::{denied, member, not_found, page, view};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row};

/// Maximum redelegation count (`max_redelegation_count`).
const MAX_REDELEGATION: i64 = 3;

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    if matches!(request.method.as_str(), "POST" | "DELETE") {
        caller.unrestricted("trusts")?;
    }
    match (request.method.as_str(), rest) {
        ("GET", []) => list(world, request, caller),
        ("POST", []) => create(world, request, caller),
        ("GET" | "HEAD", [id]) => {
            let trust = visible(world, caller, id, "get_trust")?;
            Ok(Reply::ok(json!({"trust": show(world, trust)})))
        }
        ("DELETE", [id]) => {
            let trust = visible(world, caller, id, "delete_trust")?;
            if !(caller.admin || trust.text("trustor_user_id") == caller.user) {
                return Err(denied("delete_trust"));
            }
            delete(world, id);
            Ok(Reply::empty(204))
        }
        ("GET", [id, "roles"]) => {
            let trust = visible(world, caller, id, "list_roles_for_trust")?;
            let rows = trust
                .texts("_roles")
                .iter()
                .filter_map(|role| world.keystone.roles.get(role))
                .map(|row| view(world, "roles", row))
                .collect::<Vec<_>>();
            Ok(Reply::ok(page(world, request, "roles", &rows)))
        }
        _ => Err(Refusal::no_route()),
    }
}

/// Deletes a trust and those that were created through it.
fn delete(world: &mut CloudState, id: &str) {
    let further: Vec<String> =
        world.keystone.trusts.by("redelegated_trust_id", id).map(|row| row.text("id").to_owned()).collect();
    for further in further {
        delete(world, &further);
    }
    world.keystone.trusts.remove(id);
    revoke_where(world, |token| token.scope == Scope::Trust(id.to_owned()));
}

/// Whether a trust has expired or is used up.
pub(super) fn is_over(world: &CloudState, trust: &Row) -> bool {
    let expired = trust.text("expires_at").parse::<Timestamp>().is_ok_and(|expiry| expiry <= world.now());
    expired || trust.get("remaining_uses").and_then(Value::as_i64) == Some(0)
}

fn visible<'a>(world: &'a CloudState, caller: &Caller, id: &str, action: &str) -> Result<&'a Row, Refusal> {
    let trust = world.keystone.trusts.get(id).ok_or_else(|| not_found("trust", id))?;
    let party = [trust.text("trustor_user_id"), trust.text("trustee_user_id")].contains(&caller.user.as_str());
    if party || caller.admin { Ok(trust) } else { Err(denied(action)) }
}

fn show(world: &CloudState, trust: &Row) -> Row {
    let mut row = view(world, "OS-TRUST/trusts", trust);
    let roles = trust.texts("_roles");
    let roles = roles.iter().filter_map(|role| world.keystone.roles.get(role)).map(|row| view(world, "roles", row));
    row.put("roles", roles.collect::<Vec<_>>());
    row
}

fn list(world: &CloudState, request: &ServiceCall, caller: &Caller) -> Outcome {
    let trusts = &world.keystone.trusts;
    let (trustor, trustee) = (request.param("trustor_user_id"), request.param("trustee_user_id"));
    let own = |user: Option<&str>| user == Some(caller.user.as_str());
    if !(caller.admin || own(trustor) || own(trustee)) {
        return Err(denied("list_trusts"));
    }
    let rows: Vec<&Row> = match (trustor, trustee) {
        (Some(user), _) => trusts.by("trustor_user_id", user).collect(),
        (None, Some(user)) => trusts.by("trustee_user_id", user).collect(),
        (None, None) => trusts.iter().collect(),
    };
    let fits = |row: &&Row| trustee.is_none_or(|user| row.text("trustee_user_id") == user);
    let rows = rows.into_iter().filter(fits).map(|row| view(world, "OS-TRUST/trusts", row)).collect::<Vec<_>>();
    Ok(Reply::ok(page(world, request, "trusts", &rows)))
}

fn create(world: &mut CloudState, request: &ServiceCall, caller: &Caller) -> Outcome {
    let body = member(request, "trust")?;
    if body.text("trustor_user_id") != caller.user {
        return Err(denied("create_trust"));
    }
    for field in ["trustee_user_id", "impersonation"] {
        if !body.contains_key(field) {
            return Err(Refusal::bad(format!("'{field}' is a required property")));
        }
    }
    let trustee = body.text("trustee_user_id");
    world.keystone.users.get(trustee).ok_or_else(|| not_found("user", trustee))?;
    let project = body.text("project_id").to_owned();
    let expiry = match body.get("expires_at") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let time = value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
            let time = time.ok_or_else(|| Refusal::bad("Invalid timestamp for expires_at."))?;
            if time <= world.now() {
                return Err(Refusal::bad("expires_at must be in the future."));
            }
            Some(time)
        }
    };
    let roles = requested_roles(world, &body)?;
    if roles.is_empty() {
        return Err(Refusal::forbidden("At least one role should be specified."));
    }
    if project.is_empty() {
        return Err(Refusal::forbidden("Project must be specified if roles are delegated."));
    }
    world.keystone.projects.get(&project).ok_or_else(|| not_found("project", &project))?;
    let held = effective(world, &caller.user, &Target::Project(project.clone()));
    if let Some(role) = roles.iter().find(|role| !held.contains(role)) {
        return Err(Refusal::missing(format!(
            "Could not find role assignment with role: {role}, user or group: {}, project, domain, or system: {project}.",
            caller.user
        )));
    }
    let given_by = match &caller.trust {
        Some(id) => Some(redelegated(world, id, &roles, expiry)?),
        None => None,
    };
    let left = match given_by {
        _ if !body.flag("allow_redelegation") => 0,
        Some((_, left)) => left,
        None => MAX_REDELEGATION,
    };
    let ends = expiry.map(|time| time.strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string());
    // As in Keystone's table: two trusts without an expiry are different.
    let same = |row: &Row| {
        ends.as_deref() == Some(row.text("expires_at"))
            && row.text("trustee_user_id") == trustee
            && row.text("project_id") == project
            && row.get("impersonation") == Some(&body.flag("impersonation").into())
    };
    if world.keystone.trusts.by("trustor_user_id", &caller.user).any(same) {
        return Err(Refusal::conflict(
            "Conflict occurred attempting to store trust - Duplicate entry found with existing trust.",
        ));
    }
    let id = world.hex_id();
    let mut row = Row::new();
    row.put("id", id.clone());
    row.put("trustor_user_id", caller.user.clone());
    row.put("trustee_user_id", trustee);
    row.put("project_id", project);
    row.put("impersonation", body.flag("impersonation"));
    row.put("expires_at", ends);
    row.put("remaining_uses", body.get("remaining_uses").cloned().unwrap_or_default());
    row.put("deleted_at", Value::Null);
    row.put("redelegation_count", left);
    row.put("redelegated_trust_id", given_by.map(|(trust, _)| trust));
    row.put("_roles", roles);
    let view = show(world, &row);
    world.keystone.trusts.insert(row);
    Ok(Reply::created(json!({"trust": view})))
}

/// The trust that is redelegated, and the remaining redelegation count.
fn redelegated(
    world: &CloudState,
    id: &str,
    roles: &[String],
    expiry: Option<Timestamp>,
) -> Result<(String, i64), Refusal> {
    let trust = world.keystone.trusts.get(id).ok_or_else(|| not_found("trust", id))?;
    let depth = trust.int("redelegation_count");
    if depth <= 0 {
        let text = format!("Remaining redelegation depth of {depth} out of allowed range of [0..{MAX_REDELEGATION}].");
        return Err(Refusal::forbidden(text));
    }
    let limit = trust.text("expires_at").parse::<Timestamp>().ok();
    if let (Some(limit), Some(expiry)) = (limit, expiry)
        && expiry > limit
    {
        return Err(Refusal::forbidden("Requested expiration time is more than redelegated trust can provide."));
    }
    let held = trust.texts("_roles");
    if roles.iter().any(|role| !held.contains(role)) {
        return Err(Refusal::forbidden("Some of requested roles are not in redelegated trust."));
    }
    Ok((trust.text("id").to_owned(), depth - 1))
}

/// The IDs of the roles in a body, given by ID or name.
fn requested_roles(world: &CloudState, body: &Row) -> Result<Vec<String>, Refusal> {
    let find = |item: &Value| {
        let empty = Row::new();
        let item = item.as_object().unwrap_or(&empty);
        let (id, name) = (item.text("id"), item.text("name"));
        let row =
            if id.is_empty() { world.keystone.roles.by("name", name).next() } else { world.keystone.roles.get(id) };
        row.map(|row| row.text("id").to_owned()).ok_or_else(|| not_found("role", if id.is_empty() { name } else { id }))
    };
    body.list("roles").iter().map(find).collect()
}
