//! Nova 2.1, microversions to 2.93.

mod actions;
mod aggregates;
mod attachments;
mod build;
mod create;
mod flavors;
mod groups;
mod instance_actions;
mod interfaces;
mod keypairs;
mod limits;
mod metadata;
mod servers;

use serde_json::{Value, json};

use crate::keystone::{Caller, authenticate};
use crate::nouns;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::{ServiceCall, python, python_text};
use crate::state::CloudState;
use crate::table::{Fields, Row, Table};

pub(crate) use flavors::new_flavor;

/// The state of Nova.
#[derive(Clone, Debug)]
pub(crate) struct Nova {
    pub(crate) servers: Table,
    pub(crate) flavors: Table,
    /// Keyed by user and name.
    pub(crate) keypairs: Table,
    pub(crate) groups: Table,
    /// Total number of created servers, for their internal names.
    pub(crate) made: u64,
}

impl Nova {
    pub(crate) fn new() -> Self {
        Nova {
            servers: Table::new(&["name", "tenant_id", "_server_group"]),
            flavors: Table::new(&["name"]),
            keypairs: Table::keyed("_key", &["user_id"]),
            groups: Table::new(&["project_id"]),
            made: 0,
        }
    }
}

/// A parsed request to Nova.
#[derive(Clone, Copy, Debug)]
struct Call<'a> {
    request: &'a ServiceCall,
    caller: &'a Caller,
    /// The minor number of the microversion.
    minor: u32,
}

/// The newest microversion.
pub(crate) const NEWEST: u32 = 93;

pub(crate) fn serve(world: &mut CloudState, request: &ServiceCall) -> Outcome {
    let minor = microversion(request, world.options.compute_minor)?;
    let with_version = |reply: Reply| {
        let version = format!("2.{minor}");
        reply
            .header("openstack-api-version", format!("compute {version}"))
            .header("x-openstack-nova-api-version", version)
            .header("vary", "OpenStack-API-Version, X-OpenStack-Nova-API-Version")
    };
    let Some(path) = &request.path else {
        return Ok(Reply::ok(json!({"versions": [version(world, false)]})));
    };
    if path.is_empty() {
        return Ok(with_version(Reply::ok(json!({"version": version(world, true)}))));
    }
    let caller = &authenticate(world, request)?;
    if let Some(project) = request.project.as_ref().filter(|project| **project != caller.project) {
        return Err(Refusal::bad(format!(
            "Malformed request URL: URL's project_id '{project}' doesn't match Context's project_id '{}'",
            caller.project
        )));
    }
    route(world, Call { request, caller, minor }).map(with_version)
}

fn route(world: &mut CloudState, call: Call<'_>) -> Outcome {
    let segments = call.request.segments();
    match segments.as_slice() {
        ["servers", id, "action"] => actions::route(world, call, id),
        ["servers", id, "os-interface", rest @ ..] => interfaces::route(world, call, id, rest),
        ["servers", id, "os-instance-actions", rest @ ..] => instance_actions::route(world, call, id, rest),
        ["servers", id, "os-volume_attachments", rest @ ..] => attachments::route(world, call, id, rest),
        ["servers", id, "metadata", rest @ ..] => metadata::route(world, call, id, rest),
        ["servers", id, "tags", rest @ ..] => metadata::tags(world, call, id, rest),
        ["servers", id, "remote-consoles"] => actions::remote_console(world, call, id),
        ["servers", id, "ips"] => servers::addresses(world, call, id),
        ["servers", rest @ ..] => servers::route(world, call, rest),
        ["flavors", rest @ ..] => flavors::route(world, call, rest),
        ["os-keypairs", rest @ ..] => keypairs::route(world, call, rest),
        ["os-server-groups", rest @ ..] => groups::route(world, call, rest),
        ["os-aggregates", rest @ ..] => aggregates::route(world, call, rest),
        ["os-quota-sets", project] if matches!(call.request.method.as_str(), "PUT" | "DELETE") => {
            nouns::quota(world, call.request, call.caller, &format!("compute {project}"), "quota_set", &QUOTAS)
        }
        rest => limits::route(world, call, rest),
    }
}

fn microversion(request: &ServiceCall, newest: u32) -> Result<u32, Refusal> {
    let new = request.header("openstack-api-version").and_then(|value| value.strip_prefix("compute "));
    let Some(text) = new.or_else(|| request.header("x-openstack-nova-api-version")).map(str::trim) else {
        return Ok(1);
    };
    if text == "latest" {
        return Ok(newest);
    }
    let numbers =
        text.split_once('.').and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)));
    match numbers {
        Some((2, minor)) if (1..=newest).contains(&minor) => Ok(minor),
        Some(_) => {
            let message =
                format!("Version {text} is not supported by the API. Minimum is 2.1 and maximum is 2.{newest}.");
            Err(Refusal::new(406, "", message))
        }
        None => {
            let message =
                format!("API Version String {text} is of invalid format. Must be of format MajorNum.MinorNum.");
            Err(Refusal::bad(message))
        }
    }
}

fn version(world: &CloudState, whole: bool) -> Value {
    let link = format!("{}/compute/v2.1/", world.base);
    let mut version = json!({
        "id": "v2.1", "status": "CURRENT", "version": format!("2.{}", world.options.compute_minor), "min_version": "2.1",
        "updated": "2013-07-23T11:33:21Z", "links": [{"rel": "self", "href": link}],
    });
    if whole {
        let kind = "application/vnd.openstack.compute+json;version=2.1";
        version["media-types"] = json!([{"base": "application/json", "type": kind}]);
    }
    version
}

/// The error body of Nova and Cinder.
pub(crate) fn refuse(refusal: &Refusal) -> Reply {
    let name = match refusal.status {
        400 => "badRequest",
        401 => "unauthorized",
        403 => "forbidden",
        404 if refusal.kind == "HTTPNotFound" => {
            return Reply::text(404, format!("404 Not Found\n\n{}\n\n   ", refusal.message));
        }
        404 => "itemNotFound",
        405 => "badMethod",
        409 => "conflictingRequest",
        413 => {
            let body = json!({"code": 413, "message": refusal.message, "retryAfter": "0"});
            return Reply::json(413, json!({"overLimit": body})).header("retry-after", "0");
        }
        415 => "badMediaType",
        501 => "notImplemented",
        503 => "serviceUnavailable",
        _ => "computeFault",
    };
    Reply::json(refusal.status, json!({name: {"code": refusal.status, "message": refusal.message}}))
}

/// The resources with quotas that can be changed, before microversion 2.36.
const QUOTAS: [&str; 14] = [
    "cores",
    "fixed_ips",
    "floating_ips",
    "injected_file_content_bytes",
    "injected_file_path_bytes",
    "injected_files",
    "instances",
    "key_pairs",
    "metadata_items",
    "ram",
    "security_group_rules",
    "security_groups",
    "server_group_members",
    "server_groups",
];

/// Rejects callers who are not administrators; `rule` is the name of the policy.
fn admin_only(caller: &Caller, rule: &str) -> Result<(), Refusal> {
    if caller.admin {
        return Ok(());
    }
    Err(Refusal::forbidden(format!("Policy doesn't allow os_compute_api:{rule} to be performed.")))
}

/// The error for a value that violates the schema.
pub(crate) fn invalid(field: &str, value: &Value, reason: &str) -> Refusal {
    Refusal::bad(format!("Invalid input for field/attribute {field}. Value: {}. {reason}", python_text(value)))
}

/// Rejects a body with fields that are not in `known`, or without one of `required`.
pub(crate) fn check_fields(name: &str, body: &Row, known: &[&str], required: &[&str]) -> Result<(), Refusal> {
    let whole = Value::Object(body.clone());
    if let Some(field) = required.iter().find(|field| !body.contains_key(**field)) {
        return Err(invalid(name, &whole, &format!("'{field}' is a required property")));
    }
    let unknown: Vec<String> =
        body.keys().filter(|field| !known.contains(&field.as_str())).map(|field| format!("'{field}'")).collect();
    match unknown.as_slice() {
        [] => Ok(()),
        [one] => Err(invalid(name, &whole, &format!("Additional properties are not allowed ({one} was unexpected)"))),
        many => {
            let reason = format!("Additional properties are not allowed ({} were unexpected)", many.join(", "));
            Err(invalid(name, &whole, &reason))
        }
    }
}

/// The string `field` of a body, 1 to `limit` characters long.
pub(crate) fn name_field(body: &Row, field: &str, limit: usize) -> Result<String, Refusal> {
    let value = body.get(field).unwrap_or(&Value::Null);
    let Some(text) = value.as_str() else {
        return Err(invalid(field, value, &format!("{} is not of type 'string'", python(value))));
    };
    if text.is_empty() {
        return Err(invalid(field, value, "'' is too short"));
    }
    if text.chars().count() > limit {
        return Err(invalid(field, value, &format!("{} is too long", python(value))));
    }
    Ok(text.to_owned())
}

/// A map of strings, such as metadata and extra specs.
pub(crate) fn text_map(body: &Row, field: &str) -> Result<Row, Refusal> {
    match body.get(field) {
        None => Ok(Row::new()),
        Some(Value::Object(map)) => {
            for (key, value) in map {
                let Some(text) = value.as_str() else {
                    return Err(invalid(key, value, &format!("{} is not of type 'string'", python(value))));
                };
                if key.is_empty() || key.chars().count() > 255 || text.chars().count() > 255 {
                    return Err(invalid(key, value, &format!("{} is too long", python(value))));
                }
            }
            Ok(map.clone())
        }
        Some(other) => Err(invalid(field, other, &format!("{} is not of type 'object'", python(other)))),
    }
}

/// An integer in a body, also as a string.
pub(crate) fn whole_number(body: &Row, field: &str, least: i64) -> Result<Option<i64>, Refusal> {
    let Some(value) = body.get(field).filter(|value| !value.is_null()) else { return Ok(None) };
    let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
    let Some(number) = number else {
        return Err(invalid(field, value, &format!("{} does not match '^[0-9]+$'", python(value))));
    };
    if number < least {
        return Err(invalid(field, value, &format!("{number} is less than the minimum of {least}")));
    }
    Ok(Some(number))
}

/// The links of an object.
fn links(world: &CloudState, many: &str, id: &str) -> Value {
    json!([
        {"rel": "self", "href": format!("{}/compute/v2.1/{many}/{id}", world.base)},
        {"rel": "bookmark", "href": format!("{}/compute/{many}/{id}", world.base)},
    ])
}

/// One page of a list: the rows after `marker`, at most `limit` of them, and the link to the next page.
fn page<'a>(
    world: &CloudState,
    request: &ServiceCall,
    rows: Vec<&'a Row>,
    marker_kind: &str,
) -> Result<(Vec<&'a Row>, Option<Value>), Refusal> {
    let mut rows = rows;
    if let Some(marker) = request.param("marker") {
        let at = rows.iter().position(|row| row.text("id") == marker);
        let at = at.ok_or_else(|| Refusal::bad(format!("{marker_kind} [{marker}] not found")))?;
        rows.drain(..=at);
    }
    let limit = match request.param("limit") {
        Some(text) => Some(text.parse::<usize>().map_err(|_| Refusal::bad("limit param must be an integer"))?),
        None => None,
    };
    let limit = limit.filter(|limit| *limit > 0).unwrap_or(1000).min(1000);
    let more = rows.len() > limit || request.param("limit").is_some() && rows.len() == limit;
    rows.truncate(limit);
    let link = rows.last().filter(|_| more).map(|last| {
        let rest = request.query.iter().filter(|(name, _)| name != "marker");
        let query = rest.fold(String::new(), |query, (name, value)| query + name + "=" + value + "&");
        let href = format!("{}/compute/v2.1{}?{query}marker={}", world.base, request.local_path(), last.text("id"));
        json!([{"rel": "next", "href": href}])
    });
    Ok((rows, link))
}
