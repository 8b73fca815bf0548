//! Keystone v3.

mod auth;
mod catalog;
mod credentials;
mod domains;
mod ec2;
mod groups;
mod projects;
mod roles;
mod secrets;
mod signature;
mod tokens;
mod totp;
mod trusts;
mod users;

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};

use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row, Table, public};

pub(crate) use catalog::{new_region, new_service};
pub(crate) use domains::new_domain as domain;
pub(crate) use projects::new_project;
pub(crate) use roles::{Target, grant, new_role};
pub(crate) use tokens::{Caller, authenticate};
pub use totp::passcode;
pub(crate) use users::new_user;

/// Users, projects, roles and assignments.
#[derive(Clone, Debug)]
pub(crate) struct Keystone {
    pub(crate) domains: Table,
    pub(crate) projects: Table,
    pub(crate) users: Table,
    pub(crate) roles: Table,
    pub(crate) services: Table,
    pub(crate) endpoints: Table,
    pub(crate) regions: Table,
    pub(crate) trusts: Table,
    pub(crate) credentials: Table,
    pub(crate) ec2: Table,
    /// Role assignments: user, target, role.
    pub(crate) assignments: BTreeSet<(String, Target, String)>,
    tokens: HashMap<String, tokens::Token>,
}

impl Keystone {
    pub(crate) fn new() -> Self {
        Keystone {
            domains: Table::new(&["name"]),
            projects: Table::new(&["name", "domain_id", "parent_id"]),
            users: Table::new(&["name", "domain_id"]),
            roles: Table::new(&["name"]),
            services: Table::new(&["type", "name"]),
            endpoints: Table::new(&["service_id"]),
            regions: Table::new(&[]),
            trusts: Table::new(&["trustor_user_id", "trustee_user_id", "redelegated_trust_id"]),
            credentials: Table::new(&["_user_id"]),
            ec2: Table::keyed("access", &["user_id"]),
            assignments: BTreeSet::new(),
            tokens: HashMap::new(),
        }
    }
}

pub(crate) fn serve(world: &mut CloudState, request: &ServiceCall) -> Outcome {
    let Some(path) = &request.path else {
        return Ok(Reply::json(300, json!({"versions": {"values": [version(world)]}})));
    };
    if path.is_empty() {
        return Ok(Reply::ok(json!({"version": version(world)})));
    }
    let segments = request.segments();
    if segments == ["auth", "tokens"] {
        return match request.method.as_str() {
            "POST" => auth::issue(world, request),
            "GET" | "HEAD" => tokens::validate(world, request),
            "DELETE" => tokens::revoke(world, request),
            _ => Err(Refusal::no_method()),
        };
    }
    let caller = authenticate(world, request)?;
    match segments.as_slice() {
        ["auth", rest @ ..] => auth::route(world, request, &caller, rest),
        ["OS-TRUST", "trusts", rest @ ..] => trusts::route(world, request, &caller, rest),
        ["users", user, "application_credentials", rest @ ..] => {
            credentials::route(world, request, &caller, user, rest)
        }
        ["users", user, "credentials", "OS-EC2", rest @ ..] => ec2::route(world, request, &caller, user, rest),
        ["ec2tokens"] if request.method == "POST" => ec2::token(world, request),
        ["users", rest @ ..] => users::route(world, request, &caller, rest),
        [scope @ ("projects" | "domains"), id, "groups", group, "roles", role] => {
            groups::grant(world, request, &caller, &format!("{scope}/{id}"), group, role)
        }
        ["projects", project, "users", user, "roles", rest @ ..] => {
            roles::grants(world, request, &caller, &Target::Project((*project).to_owned()), user, rest)
        }
        ["domains", domain, "users", user, "roles", rest @ ..] => {
            roles::grants(world, request, &caller, &Target::Domain((*domain).to_owned()), user, rest)
        }
        ["system", "users", user, "roles", rest @ ..] => {
            roles::grants(world, request, &caller, &Target::System, user, rest)
        }
        ["credentials", rest @ ..] => secrets::route(world, request, &caller, rest),
        ["projects", rest @ ..] => projects::route(world, request, &caller, rest),
        ["domains", rest @ ..] => domains::route(world, request, &caller, rest),
        ["roles", rest @ ..] => roles::route(world, request, &caller, rest),
        ["role_assignments"] => roles::assignments(world, request, &caller),
        ["services", rest @ ..] => catalog::services(world, request, &caller, rest),
        ["endpoints", rest @ ..] => catalog::endpoints(world, request, &caller, rest),
        ["regions", rest @ ..] => catalog::regions(world, request, &caller, rest),
        ["groups", rest @ ..] => groups::route(world, request, &caller, rest),
        _ => Err(Refusal::no_route()),
    }
}

fn version(world: &CloudState) -> Value {
    json!({
        "id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": format!("{}/identity/v3/", world.base)}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
    })
}

/// Keystone's error body.
pub(crate) fn refuse(refusal: &Refusal) -> Reply {
    let title = match refusal.status {
        400 => "Bad ServiceCall",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    };
    let body = json!({"error": {"code": refusal.status, "message": refusal.message, "title": title}});
    Reply::json(refusal.status, body)
}

fn not_found(kind: &str, id: &str) -> Refusal {
    Refusal::missing(format!("Could not find {kind}: {id}."))
}

/// Rejects callers who are not administrators for `action` (`create_project`).
fn admin_only(caller: &Caller, action: &str) -> Result<(), Refusal> {
    if caller.admin { Ok(()) } else { Err(denied(action)) }
}

fn denied(action: &str) -> Refusal {
    Refusal::forbidden(format!("You are not authorized to perform the requested action: identity:{action}."))
}

/// The object under `name` in the body.
fn member(request: &ServiceCall, name: &str) -> Result<Row, Refusal> {
    let malformed = "Expecting to find valid JSON in request body. The server could not comply with the request since it \
                     is either malformed or otherwise incorrect. The client is assumed to be in error.";
    match request.json(malformed)?.get_mut(name).map(Value::take) {
        Some(Value::Object(row)) => Ok(row),
        _ => Err(Refusal::bad(format!("'{name}' is a required property"))),
    }
}

/// Rejects a body without the string `field`.
fn need(body: &Row, field: &str) -> Result<String, Refusal> {
    match body.get(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(Value::String(_)) => Err(Refusal::bad("'' is too short")),
        Some(other) => Err(Refusal::bad(format!("{} is not of type 'string'", crate::request::python(other)))),
        None => Err(Refusal::bad(format!("'{field}' is a required property"))),
    }
}

/// A row with its link, as in responses for `plural`.
fn view(world: &CloudState, plural: &str, row: &Row) -> Row {
    let mut row = public(row);
    let link = format!("{}/identity/v3/{plural}/{}", world.base, row.text("id"));
    row.put("links", json!({"self": link}));
    row
}

/// A list response.
fn page(world: &CloudState, request: &ServiceCall, plural: &str, rows: &[Row]) -> Value {
    let query = if request.raw_query.is_empty() { String::new() } else { format!("?{}", request.raw_query) };
    let link = format!("{}/identity/v3{}{query}", world.base, request.local_path());
    json!({plural: rows, "links": {"next": null, "self": link, "previous": null}})
}

/// Lists `table`, filtered by the query parameters in `fields`.
fn list(world: &CloudState, request: &ServiceCall, plural: &str, table: &Table, fields: &[&str]) -> Reply {
    let wanted = |row: &&Row| {
        request.query.iter().filter(|(name, _)| fields.contains(&name.as_str())).all(|(name, value)| {
            match row.get(name) {
                Some(Value::String(text)) => text == value,
                Some(Value::Bool(flag)) => *flag == !matches!(value.to_ascii_lowercase().as_str(), "0" | "false"),
                _ => false,
            }
        })
    };
    let rows: Vec<Row> = table.iter().filter(wanted).map(|row| view(world, plural, row)).collect();
    Reply::ok(page(world, request, plural, &rows))
}
