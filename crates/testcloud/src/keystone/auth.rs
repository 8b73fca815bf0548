//! `POST /auth/tokens`, and requests of callers about themselves.

use jiff::Timestamp;
use serde_json::Value;

use super::roles::{Target, effective};
use super::tokens::{Caller, Scope, body, live, store};
use super::{member, not_found, page, totp, view};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row};

/// An authenticated user.
struct Proof {
    user: String,
    methods: Vec<String>,
    credential: Option<String>,
    /// Maximum expiry of tokens that are issued for a token.
    until: Option<Timestamp>,
    trusted: bool,
}

pub(super) fn issue(world: &mut CloudState, request: &ServiceCall) -> Outcome {
    let auth = member(request, "auth")?;
    let Some(Value::Object(identity)) = auth.get("identity") else {
        return Err(Refusal::bad("'identity' is a required property"));
    };
    let methods = identity.texts("methods");
    if methods.is_empty() {
        return Err(Refusal::bad("'methods' is a required property"));
    }
    let mut proof =
        Proof { user: String::new(), methods: methods.clone(), credential: None, until: None, trusted: false };
    for method in &methods {
        let Some(Value::Object(data)) = identity.get(method) else {
            return Err(Refusal::bad(format!("Expecting to find {method} in identity")));
        };
        match method.as_str() {
            "password" => by_password(world, data, &mut proof)?,
            "totp" => by_passcode(world, data, &mut proof)?,
            "token" => by_token(world, data, &mut proof)?,
            "application_credential" => by_credential(world, data, &mut proof)?,
            _ => return Err(Refusal::unauthorized()),
        }
    }
    if let Some(more) = totp::more_methods(world, &proof.user, &proof.methods)? {
        return Ok(more);
    }
    let scope = scope(world, &auth, &proof)?;
    if let Scope::Trust(trust) = &scope {
        use_up(world, trust)?;
    }
    let until = match &scope {
        Scope::Trust(trust) => world.keystone.trusts.get(trust).and_then(|row| row.text("expires_at").parse().ok()),
        _ => proof.until,
    };
    let id = store(world, proof.user, scope, proof.methods, proof.credential, until);
    let token = live(world, &id).ok_or_else(Refusal::unauthorized)?;
    let reply = body(world, token, request.param("nocatalog").is_none())?;
    Ok(Reply::created(reply).header("x-subject-token", id).header("vary", "X-Auth-Token"))
}

/// The user with an ID, or with a name and domain.
fn find_user(world: &CloudState, data: &Row) -> Option<String> {
    let users = &world.keystone.users;
    let id = data.text("id");
    if !id.is_empty() {
        return users.get(id).map(|row| row.text("id").to_owned());
    }
    let domain = find_domain(world, data.get("domain")?.as_object()?)?;
    let row = users.by("name", data.text("name")).find(|row| row.text("domain_id") == domain)?;
    Some(row.text("id").to_owned())
}

fn find_domain(world: &CloudState, data: &Row) -> Option<String> {
    let domains = &world.keystone.domains;
    let row = if data.contains_key("id") {
        domains.get(data.text("id"))
    } else {
        domains.by("name", data.text("name")).next()
    };
    row.filter(|row| row.flag("enabled")).map(|row| row.text("id").to_owned())
}

fn find_project(world: &CloudState, data: &Row) -> Option<String> {
    let projects = &world.keystone.projects;
    let row = if data.contains_key("id") {
        projects.get(data.text("id"))?
    } else {
        let domain = find_domain(world, data.get("domain")?.as_object()?)?;
        projects.by("name", data.text("name")).find(|row| row.text("domain_id") == domain)?
    };
    row.flag("enabled").then(|| row.text("id").to_owned())
}

fn by_password(world: &CloudState, data: &Row, proof: &mut Proof) -> Result<(), Refusal> {
    let Some(Value::Object(user)) = data.get("user") else {
        return Err(Refusal::bad("'user' is a required property"));
    };
    let id = find_user(world, user).ok_or_else(Refusal::unauthorized)?;
    let row = world.keystone.users.get(&id).ok_or_else(Refusal::unauthorized)?;
    if !row.flag("enabled") || row.text("_password").is_empty() || row.text("_password") != user.text("password") {
        return Err(Refusal::unauthorized());
    }
    proof.user = id;
    Ok(())
}

fn by_passcode(world: &CloudState, data: &Row, proof: &mut Proof) -> Result<(), Refusal> {
    let Some(Value::Object(user)) = data.get("user") else {
        return Err(Refusal::bad("'user' is a required property"));
    };
    let id = find_user(world, user).ok_or_else(Refusal::unauthorized)?;
    let row = world.keystone.users.get(&id).filter(|row| row.flag("enabled")).ok_or_else(Refusal::unauthorized)?;
    let is_other = !proof.user.is_empty() && proof.user != id;
    if is_other || row.text("_totp").is_empty() || !totp::is_passcode(world, row.text("_totp"), user.text("passcode")) {
        return Err(Refusal::unauthorized());
    }
    proof.user = id;
    Ok(())
}

fn by_token(world: &CloudState, data: &Row, proof: &mut Proof) -> Result<(), Refusal> {
    let token = live(world, data.text("id")).ok_or_else(Refusal::unauthorized)?;
    if token.credential.is_some() {
        return Err(Refusal::forbidden("Could not perform the requested action with an application credential token."));
    }
    proof.user.clone_from(&token.user);
    proof.until = Some(token.expires);
    proof.trusted = matches!(token.scope, Scope::Trust(_));
    for method in &token.methods {
        if !proof.methods.contains(method) {
            proof.methods.push(method.clone());
        }
    }
    Ok(())
}

fn by_credential(world: &CloudState, data: &Row, proof: &mut Proof) -> Result<(), Refusal> {
    let credentials = &world.keystone.credentials;
    let row = if data.contains_key("id") {
        credentials.get(data.text("id"))
    } else {
        let user = data.get("user").and_then(Value::as_object).and_then(|user| find_user(world, user));
        user.and_then(|user| credentials.by("_user_id", &user).find(|row| row.text("name") == data.text("name")))
    };
    let row = row.filter(|row| row.text("_secret") == data.text("secret")).ok_or_else(Refusal::unauthorized)?;
    let expiry: Option<Timestamp> = row.text("expires_at").parse().ok();
    if expiry.is_some_and(|expiry| expiry <= world.now()) {
        return Err(Refusal::unauthorized());
    }
    row.text("_user_id").clone_into(&mut proof.user);
    proof.credential = Some(row.text("id").to_owned());
    proof.until = expiry;
    Ok(())
}

fn scope(world: &CloudState, auth: &Row, proof: &Proof) -> Result<Scope, Refusal> {
    let keystone = &world.keystone;
    if let Some(credential) = proof.credential.as_ref().and_then(|id| keystone.credentials.get(id)) {
        if auth.contains_key("scope") {
            return Err(Refusal::unauthorized());
        }
        return Ok(Scope::On(Target::Project(credential.text("project_id").to_owned())));
    }
    let scope = match auth.get("scope") {
        Some(Value::String(text)) if text == "unscoped" => return Ok(Scope::None),
        Some(Value::Object(scope)) => scope,
        None => {
            let project = keystone.users.get(&proof.user).map_or("", |row| row.text("default_project_id"));
            let target = Target::Project(project.to_owned());
            let usable = !project.is_empty() && !effective(world, &proof.user, &target).is_empty();
            return Ok(if usable { Scope::On(target) } else { Scope::None });
        }
        Some(_) => return Err(Refusal::bad("Invalid input for field 'scope'.")),
    };
    if proof.trusted {
        let message = "Using trust-scoped token to create another token. Create a new trust-scoped token instead";
        return Err(Refusal::forbidden(message));
    }
    let part = |name: &str| scope.get(name).and_then(Value::as_object);
    let target = if let Some(trust) = part("OS-TRUST:trust") {
        return trust_scope(world, trust.text("id"), &proof.user);
    } else if let Some(project) = part("project") {
        Target::Project(find_project(world, project).ok_or_else(Refusal::unauthorized)?)
    } else if let Some(domain) = part("domain") {
        Target::Domain(find_domain(world, domain).ok_or_else(Refusal::unauthorized)?)
    } else if part("system").is_some() {
        Target::System
    } else {
        return Err(Refusal::bad("Expecting to find project, domain, system or OS-TRUST:trust in scope"));
    };
    if effective(world, &proof.user, &target).is_empty() {
        return Err(Refusal::unauthorized());
    }
    Ok(Scope::On(target))
}

fn trust_scope(world: &CloudState, id: &str, user: &str) -> Result<Scope, Refusal> {
    let trust = world.keystone.trusts.get(id).filter(|trust| !super::trusts::is_over(world, trust));
    let trust = trust.ok_or_else(|| not_found("trust", id))?;
    if trust.text("trustee_user_id") != user {
        return Err(Refusal::forbidden("User is not a trustee."));
    }
    let trustor = world.keystone.users.get(trust.text("trustor_user_id"));
    if !trustor.is_some_and(|row| row.flag("enabled")) {
        return Err(Refusal::forbidden("Trustor is disabled."));
    }
    let held = effective(world, trust.text("trustor_user_id"), &Target::Project(trust.text("project_id").to_owned()));
    if !trust.texts("_roles").iter().all(|role| held.contains(role)) {
        return Err(Refusal::forbidden("Trustor no longer has the roles of the trust."));
    }
    Ok(Scope::Trust(id.to_owned()))
}

/// Counts one use of a trust that has a limited number of them.
fn use_up(world: &mut CloudState, trust: &str) -> Result<(), Refusal> {
    let left = world.keystone.trusts.get(trust).and_then(|row| row.get("remaining_uses")?.as_i64());
    match left {
        Some(..=0) => Err(not_found("trust", trust)),
        Some(left) => {
            world.keystone.trusts.edit(trust, |row| row.put("remaining_uses", left - 1));
            Ok(())
        }
        None => Ok(()),
    }
}

/// `GET /auth/projects`, `/auth/domains`, `/auth/catalog`, `/auth/system`.
pub(super) fn route(world: &CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    let keystone = &world.keystone;
    let held = |pick: fn(&Target) -> Option<&String>| {
        let mut ids: Vec<&String> = keystone
            .assignments
            .iter()
            .filter(|(user, _, _)| *user == caller.user)
            .filter_map(|(_, target, _)| pick(target))
            .collect();
        ids.dedup();
        ids
    };
    match (request.method.as_str(), rest) {
        ("GET", ["projects"]) => {
            let ids = held(|target| if let Target::Project(id) = target { Some(id) } else { None });
            let rows = ids.into_iter().filter_map(|id| keystone.projects.get(id));
            let rows = rows.map(|row| view(world, "projects", row)).collect::<Vec<_>>();
            Ok(Reply::ok(page(world, request, "projects", &rows)))
        }
        ("GET", ["domains"]) => {
            let ids = held(|target| if let Target::Domain(id) = target { Some(id) } else { None });
            let rows = ids.into_iter().filter_map(|id| keystone.domains.get(id));
            let rows = rows.map(|row| view(world, "domains", row)).collect::<Vec<_>>();
            Ok(Reply::ok(page(world, request, "domains", &rows)))
        }
        ("GET", ["catalog"]) => {
            let catalog = super::catalog::of_project(world, &caller.project);
            let link = format!("{}/identity/v3/auth/catalog", world.base);
            Ok(Reply::ok(serde_json::json!({"catalog": catalog, "links": {"self": link}})))
        }
        ("GET", ["system"]) => {
            let all =
                keystone.assignments.iter().any(|(user, target, _)| *user == caller.user && *target == Target::System);
            let system = if all { serde_json::json!([{"all": true}]) } else { serde_json::json!([]) };
            Ok(Reply::ok(serde_json::json!({"system": system})))
        }
        _ => Err(Refusal::no_route()),
    }
}
