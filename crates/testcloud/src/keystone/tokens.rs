//! Tokens: their content, validation and revocation.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::roles::{Target, effective};
use super::{denied, not_found};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::Fields;

/// The caller of a request, from its token.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) token: String,
    pub(crate) user: String,
    /// Empty if the token has no project.
    pub(crate) project: String,
    /// Whether it has the role `admin`.
    pub(crate) admin: bool,
    /// The names of the roles.
    pub(crate) roles: Vec<String>,
    /// The trust of the token.
    pub(super) trust: Option<String>,
    /// Whether the token is of an application credential that may not manage trusts and application credentials.
    restricted: bool,
}

impl Caller {
    /// A service of the cloud, acting in `project`.
    pub(crate) fn service(project: &str) -> Self {
        let (token, user) = (String::new(), String::new());
        Caller {
            token,
            user,
            project: project.to_owned(),
            admin: true,
            roles: Vec::new(),
            trust: None,
            restricted: false,
        }
    }

    /// Refuses a restricted application credential for `what`: trusts or further application credentials.
    pub(super) fn unrestricted(&self, what: &str) -> Result<(), Refusal> {
        if !self.restricted {
            return Ok(());
        }
        let text = "You are not authorized to perform the requested action: Using method 'application_credential' is not \
                    allowed for managing";
        Err(Refusal::forbidden(format!("{text} {what}.")))
    }

    /// Whether an object of `project` belongs to the caller.
    pub(crate) fn owns(&self, project: &str) -> bool {
        self.admin || self.project == project
    }
}

/// The scope of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    None,
    On(Target),
    /// A trust, by ID.
    Trust(String),
}

/// An issued token.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) user: String,
    pub(super) scope: Scope,
    pub(super) methods: Vec<String>,
    pub(super) credential: Option<String>,
    pub(super) issued: Timestamp,
    pub(super) expires: Timestamp,
    pub(super) audit: String,
}

/// The caller of a request; 401 without a valid token.
pub(crate) fn authenticate(world: &CloudState, request: &ServiceCall) -> Result<Caller, Refusal> {
    let id = request.header("x-auth-token").ok_or_else(Refusal::unauthorized)?;
    let token = live(world, id).ok_or_else(Refusal::unauthorized)?;
    let (project, roles) = standing(world, token).ok_or_else(Refusal::unauthorized)?;
    let roles: Vec<String> =
        roles.iter().filter_map(|role| world.keystone.roles.get(role)).map(|row| row.text("name").to_owned()).collect();
    let trust = match &token.scope {
        Scope::Trust(trust) => Some(trust.clone()),
        _ => None,
    };
    let admin = roles.iter().any(|role| role == "admin");
    let credential = token.credential.as_ref().and_then(|id| world.keystone.credentials.get(id));
    let restricted = credential.is_some_and(|credential| !credential.flag("unrestricted"));
    Ok(Caller { token: id.to_owned(), user: acting_user(world, token)?, project, admin, roles, trust, restricted })
}

/// A known token that has not expired.
pub(super) fn live<'a>(world: &'a CloudState, id: &str) -> Option<&'a Token> {
    world.keystone.tokens.get(id).filter(|token| token.expires > world.now())
}

/// The project (if any) and the role IDs of a token; `None` if its user, project or trust is deleted or disabled.
fn standing(world: &CloudState, token: &Token) -> Option<(String, Vec<String>)> {
    let keystone = &world.keystone;
    if !keystone.users.get(&token.user)?.flag("enabled") {
        return None;
    }
    match &token.scope {
        Scope::None => Some((String::new(), Vec::new())),
        Scope::On(target) => {
            let roles = match &token.credential {
                Some(credential) => keystone.credentials.get(credential)?.texts("_roles"),
                None => effective(world, &token.user, target),
            };
            let project = match target {
                Target::Project(project) if keystone.projects.get(project)?.flag("enabled") => project.clone(),
                Target::Project(_) => return None,
                Target::Domain(_) | Target::System => String::new(),
            };
            (!roles.is_empty()).then_some((project, roles))
        }
        Scope::Trust(trust) => {
            let trust = keystone.trusts.get(trust)?;
            let project = trust.text("project_id").to_owned();
            keystone.projects.get(&project).filter(|row| row.flag("enabled"))?;
            let held = effective(world, trust.text("trustor_user_id"), &Target::Project(project.clone()));
            let roles = trust.texts("_roles");
            roles.iter().all(|role| held.contains(role)).then_some((project, roles))
        }
    }
}

/// The user of a token: the trustor if its trust impersonates.
fn acting_user(world: &CloudState, token: &Token) -> Result<String, Refusal> {
    let Scope::Trust(trust) = &token.scope else { return Ok(token.user.clone()) };
    let trust = world.keystone.trusts.get(trust).ok_or_else(Refusal::unauthorized)?;
    Ok(if trust.flag("impersonation") { trust.text("trustor_user_id").to_owned() } else { token.user.clone() })
}

/// Stores a new token and returns its ID. `life` limits the lifetime.
pub(super) fn store(
    world: &mut CloudState,
    user: String,
    scope: Scope,
    methods: Vec<String>,
    credential: Option<String>,
    until: Option<Timestamp>,
) -> String {
    let issued = world.now();
    let usual = issued.checked_add(world.options.token_life).unwrap_or(Timestamp::MAX);
    let expires = until.map_or(usual, |until| until.min(usual));
    let (audit, id) = (world.hex_id()[..22].to_owned(), format!("gAAAAA{}{}", world.hex_id(), world.hex_id()));
    // Expired tokens are removed after an hour, in bulk when tokens are issued.
    if world.keystone.tokens.len().is_power_of_two() {
        let limit = issued.checked_sub(Duration::from_hours(1)).unwrap_or(issued);
        world.keystone.tokens.retain(|_, token| token.expires > limit);
    }
    world.keystone.tokens.insert(id.clone(), Token { user, scope, methods, credential, issued, expires, audit });
    id
}

/// The body of a token for issue and validation.
pub(super) fn body(world: &CloudState, token: &Token, with_catalog: bool) -> Result<Value, Refusal> {
    let keystone = &world.keystone;
    let (project, roles) = standing(world, token).ok_or_else(Refusal::unauthorized)?;
    let user = acting_user(world, token)?;
    let stamp = |time: Timestamp| time.strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string();
    let domain = |id: &str| {
        let name = keystone.domains.get(id).map(|row| row.text("name").to_owned());
        json!({"id": id, "name": name})
    };
    let row = keystone.users.get(&user).ok_or_else(Refusal::unauthorized)?;
    let mut body = Map::new();
    body.put("methods", token.methods.clone());
    body.put(
        "user",
        json!({"domain": domain(row.text("domain_id")), "id": user, "name": row.text("name"), "password_expires_at": null}),
    );
    body.put("audit_ids", json!([token.audit]));
    body.put("expires_at", stamp(token.expires));
    body.put("issued_at", stamp(token.issued));
    if let Some(row) = keystone.projects.get(&project) {
        let view = json!({"domain": domain(row.text("domain_id")), "id": project, "name": row.text("name")});
        body.put("project", view);
        body.put("is_domain", false);
    }
    match &token.scope {
        Scope::On(Target::Domain(id)) => body.put("domain", domain(id)),
        Scope::On(Target::System) => body.put("system", json!({"all": true})),
        Scope::Trust(id) => {
            let trust = keystone.trusts.get(id).ok_or_else(Refusal::unauthorized)?;
            let view = json!({
                "id": id,
                "impersonation": trust.flag("impersonation"),
                "trustee_user": {"id": trust.text("trustee_user_id")},
                "trustor_user": {"id": trust.text("trustor_user_id")},
            });
            body.put("OS-TRUST:trust", view);
        }
        Scope::None | Scope::On(Target::Project(_)) => {}
    }
    if token.scope != Scope::None {
        let named =
            |id: &String| json!({"id": id, "name": keystone.roles.get(id).map(|row| row.text("name").to_owned())});
        body.put("roles", roles.iter().map(named).collect::<Vec<_>>());
        if with_catalog {
            body.put("catalog", super::catalog::of_project(world, &project));
        }
    }
    if let Some(id) = &token.credential
        && let Some(row) = keystone.credentials.get(id)
    {
        let view = json!({"id": id, "name": row.text("name"), "restricted": !row.flag("unrestricted")});
        body.put("application_credential", view);
    }
    Ok(json!({"token": body}))
}

/// `GET` and `HEAD /auth/tokens`.
pub(super) fn validate(world: &mut CloudState, request: &ServiceCall) -> Outcome {
    let caller = authenticate(world, request)?;
    let subject = subject(request)?;
    let token = live(world, &subject).ok_or_else(|| not_found_token(world, &subject))?;
    let service = caller.roles.iter().any(|role| role == "service");
    // A token of a trust may not read its own data.
    let own = caller.token == subject && caller.trust.is_none();
    if !(caller.admin || service || own) {
        return Err(denied("validate_token"));
    }
    let body = body(world, token, request.param("nocatalog").is_none())
        .map_err(|_| not_found("token", "the token's user, project or trust is deleted"))?;
    Ok(Reply::ok(body).header("x-subject-token", subject).header("vary", "X-Auth-Token"))
}

/// `DELETE /auth/tokens`.
pub(super) fn revoke(world: &mut CloudState, request: &ServiceCall) -> Outcome {
    let caller = authenticate(world, request)?;
    let subject = subject(request)?;
    let user = live(world, &subject).ok_or_else(|| not_found_token(world, &subject))?.user.clone();
    if !(caller.admin || caller.user == user) {
        return Err(denied("revoke_token"));
    }
    world.keystone.tokens.remove(&subject);
    Ok(Reply::empty(204))
}

/// Revokes all tokens that match `ended`.
pub(super) fn revoke_where(world: &mut CloudState, ended: impl Fn(&Token) -> bool) {
    world.keystone.tokens.retain(|_, token| !ended(token));
}

fn subject(request: &ServiceCall) -> Result<String, Refusal> {
    let subject = request.header("x-subject-token").ok_or_else(|| not_found("token", "no X-Subject-Token"))?;
    Ok(subject.to_owned())
}

fn not_found_token(world: &CloudState, id: &str) -> Refusal {
    if world.keystone.tokens.contains_key(id) {
        not_found("token", id)
    } else {
        Refusal::missing("Could not recognize Fernet token")
    }
}
