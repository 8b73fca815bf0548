//! `/credentials`: EC2 keys and the secrets of one-time passwords, of users.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::tokens::Caller;
use super::{admin_only, member, need, not_found, page, totp};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row};

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    admin_only(caller, "credential")?;
    match (request.method.as_str(), rest) {
        ("POST", []) => create(world, request),
        ("GET", []) => {
            let user = request.param("user_id");
            let rows = world.keystone.ec2.iter().filter(|row| user.is_none_or(|user| row.text("user_id") == user));
            let rows: Vec<Row> = rows.map(show).collect();
            Ok(Reply::ok(page(world, request, "credentials", &rows)))
        }
        ("GET", [id]) => Ok(Reply::ok(json!({"credential": show(&find(world, id)?)}))),
        ("DELETE", [id]) => {
            let access = find(world, id)?.text("access").to_owned();
            world.keystone.ec2.remove(&access);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_route()),
    }
}

/// The ID is the digest of the access key, so that a second create is a conflict.
fn create(world: &mut CloudState, request: &ServiceCall) -> Outcome {
    let body = member(request, "credential")?;
    if body.text("type") == "totp" {
        let user = need(&body, "user_id")?;
        world.keystone.users.get(&user).ok_or_else(|| not_found("user", &user))?;
        return Ok(Reply::created(json!({"credential": totp::store(world, &user, body.text("blob"))?})));
    }
    if body.text("type") != "ec2" {
        return Err(Refusal::bad("Only credentials of the types ec2 and totp are simulated."));
    }
    let (user, project) = (need(&body, "user_id")?, need(&body, "project_id")?);
    world.keystone.users.get(&user).ok_or_else(|| not_found("user", &user))?;
    world.keystone.projects.get(&project).ok_or_else(|| not_found("project", &project))?;
    let blob: Value =
        serde_json::from_str(body.text("blob")).map_err(|_| Refusal::bad("Invalid blob in credential"))?;
    let (Some(access), Some(secret)) = (blob["access"].as_str(), blob["secret"].as_str()) else {
        return Err(Refusal::bad("Invalid blob in credential"));
    };
    if world.keystone.ec2.get(access).is_some() {
        return Err(Refusal::conflict("Conflict occurred attempting to store credential - Duplicate entry."));
    }
    let mut row = Row::new();
    row.put("access", access);
    row.put("secret", secret);
    row.put("user_id", user);
    row.put("tenant_id", project);
    row.put("trust_id", Value::Null);
    world.keystone.ec2.insert(row.clone());
    Ok(Reply::created(json!({"credential": show(&row)})))
}

fn find(world: &CloudState, id: &str) -> Result<Row, Refusal> {
    let found = world.keystone.ec2.iter().find(|row| digest(row.text("access")) == id);
    found.cloned().ok_or_else(|| not_found("credential", id))
}

fn digest(access: &str) -> String {
    format!("{:x}", Sha256::digest(access))
}

fn show(row: &Row) -> Row {
    let blob = json!({"access": row.text("access"), "secret": row.text("secret")});
    let mut seen = Row::new();
    seen.put("id", digest(row.text("access")));
    seen.put("type", "ec2");
    seen.put("user_id", row.text("user_id"));
    seen.put("project_id", row.text("tenant_id"));
    seen.put("blob", blob.to_string());
    seen
}
