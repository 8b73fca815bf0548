//! Cinder v3, microversions to 3.70.

mod actions;
mod attachments;
mod backups;
mod limits;
mod qos;
mod snapshots;
mod types;
mod volumes;

use serde_json::{Value, json};

use crate::keystone::{Caller, authenticate};
use crate::nouns;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row, Table};

pub(crate) use attachments::{attached, detached};
pub(crate) use types::new_type;
pub(crate) use volumes::{begin_delete, make_for_server, set_status};

/// The state of Cinder.
#[derive(Clone, Debug)]
pub(crate) struct Cinder {
    pub(crate) volumes: Table,
    pub(crate) snapshots: Table,
    pub(crate) backups: Table,
    pub(crate) types: Table,
    pub(crate) attachments: Table,
}

impl Cinder {
    pub(crate) fn new() -> Self {
        Cinder {
            volumes: Table::new(&["name", "os-vol-tenant-attr:tenant_id"]),
            snapshots: Table::new(&["volume_id", "project_id"]),
            backups: Table::new(&["volume_id", "project_id"]),
            types: Table::new(&["name"]),
            attachments: Table::new(&["volume_id", "instance"]),
        }
    }
}

/// A parsed request to Cinder.
#[derive(Clone, Copy, Debug)]
struct Call<'a> {
    request: &'a ServiceCall,
    caller: &'a Caller,
}

/// The newest microversion.
const NEWEST: u32 = 70;

pub(crate) fn serve(world: &mut CloudState, request: &ServiceCall) -> Outcome {
    if request.path.as_ref().is_none_or(Vec::is_empty) {
        let link = format!("{}/volume/v3/", world.base);
        let version = json!({
            "id": "v3.0", "status": "CURRENT", "version": format!("3.{NEWEST}"), "min_version": "3.0",
            "updated": "2022-08-31T00:00:00Z", "links": [{"rel": "self", "href": link}],
            "media-types": [{"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"}],
        });
        let status = if request.path.is_none() { 300 } else { 200 };
        return Ok(Reply::json(status, json!({"versions": [version]})));
    }
    let minor = microversion(request)?;
    let caller = &authenticate(world, request)?;
    if request.project.as_ref().is_some_and(|project| *project != caller.project) {
        return Err(Refusal::bad("Malformed request url"));
    }
    let call = Call { request, caller };
    let segments = request.segments();
    let reply = match segments.as_slice() {
        ["volumes", id, "action"] => actions::route(world, call, id),
        ["volumes", rest @ ..] => volumes::route(world, call, rest),
        ["snapshots", rest @ ..] => snapshots::route(world, call, rest),
        ["backups", rest @ ..] => backups::route(world, call, rest),
        ["types", rest @ ..] => types::route(world, call, rest),
        ["attachments", rest @ ..] => attachments::route(world, call, rest),
        ["qos-specs", rest @ ..] => qos::route(world, call, rest),
        ["os-quota-sets", project] if matches!(request.method.as_str(), "PUT" | "DELETE") => {
            let names = ["gigabytes", "volumes", "snapshots", "backups", "backup_gigabytes"];
            nouns::quota(world, request, caller, &format!("volume {project}"), "quota_set", &names)
        }
        rest => limits::route(world, call, rest),
    }?;
    Ok(reply.header("openstack-api-version", format!("volume 3.{minor}")).header("vary", "OpenStack-API-Version"))
}

fn microversion(request: &ServiceCall) -> Result<u32, Refusal> {
    let Some(text) = request.header("openstack-api-version").and_then(|value| value.strip_prefix("volume ")) else {
        return Ok(0);
    };
    if text == "latest" {
        return Ok(NEWEST);
    }
    let minor = text.strip_prefix("3.").and_then(|minor| minor.parse::<u32>().ok());
    minor.filter(|minor| *minor <= NEWEST).ok_or_else(|| {
        let message = format!("Version {text} is not supported by the API. Minimum is 3.0 and maximum is 3.{NEWEST}.");
        Refusal::new(406, "", message)
    })
}

/// Rejects callers who are not administrators; `rule` is the name of the policy.
fn admin_only(caller: &Caller, rule: &str) -> Result<(), Refusal> {
    if caller.admin { Ok(()) } else { Err(Refusal::forbidden(format!("Policy doesn't allow {rule} to be performed."))) }
}

/// The rows of a page, by the `limit`, `marker` and `offset` of a query.
fn page<'a>(request: &ServiceCall, mut rows: Vec<&'a Row>) -> Result<Vec<&'a Row>, Refusal> {
    let number = |name: &str| match request.param(name) {
        Some(text) => {
            let number = text.parse::<usize>();
            number.map(Some).map_err(|_| Refusal::bad(format!("{name} param must be an integer")))
        }
        None => Ok(None),
    };
    if let Some(marker) = request.param("marker") {
        let at = rows.iter().position(|row| row.text("id") == marker);
        let at = at.ok_or_else(|| Refusal::missing(format!("Volume {marker} could not be found.")))?;
        rows.drain(..=at);
    }
    if let Some(offset) = number("offset")? {
        rows.drain(..offset.min(rows.len()));
    }
    if let Some(limit) = number("limit")? {
        rows.truncate(limit);
    }
    Ok(rows)
}

/// Metadata with its own path: `…/metadata[/{key}]`.
fn metadata(request: &ServiceCall, metadata: &mut Row, rest: &[&str]) -> Outcome {
    let given = |name: &str| -> Result<Row, Refusal> {
        match request.json("Malformed request body")? {
            Value::Object(body) if body.contains_key(name) => crate::nova::text_map(&body, name),
            _ => Err(Refusal::bad(format!("'{name}' is a required property"))),
        }
    };
    let missing = |key: &str| Refusal::missing(format!("Metadata item was not found: {key}"));
    match (request.method.as_str(), rest) {
        ("GET", []) => Ok(Reply::ok(json!({"metadata": metadata}))),
        ("GET", [key]) => {
            let value = metadata.get(*key).ok_or_else(|| missing(key))?;
            Ok(Reply::ok(json!({"meta": {*key: value}})))
        }
        ("POST", []) => {
            metadata.extend(given("metadata")?);
            Ok(Reply::ok(json!({"metadata": metadata})))
        }
        ("PUT", []) => {
            *metadata = given("metadata")?;
            Ok(Reply::ok(json!({"metadata": metadata})))
        }
        ("PUT", [key]) => {
            let item = given("meta")?;
            if !item.contains_key(*key) {
                return Err(Refusal::bad("ServiceCall body and URI mismatch"));
            }
            metadata.extend(item.clone());
            Ok(Reply::ok(json!({"meta": item})))
        }
        ("DELETE", [key]) => {
            metadata.remove(*key).ok_or_else(|| missing(key))?;
            Ok(Reply::empty(200))
        }
        _ => Err(Refusal::no_method()),
    }
}
