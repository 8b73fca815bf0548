//! Quotas of Neutron.

use serde_json::{Value, json};

use super::attributes::integer;
use super::{object, refusal};
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::Table;

const RESOURCES: [&str; 10] = [
    "network",
    "subnet",
    "subnetpool",
    "port",
    "router",
    "floatingip",
    "rbac_policy",
    "security_group",
    "security_group_rule",
    "trunk",
];

/// The limit of a project; -1 means none.
fn limit(world: &CloudState, project: &str, resource: &str) -> i64 {
    if let Some(limit) = world.neutron.quotas.get(project).and_then(|limits| limits.get(resource)) {
        return *limit;
    }
    let quota = &world.options.quota;
    let limit = match resource {
        "network" => quota.networks,
        "subnet" => quota.subnets,
        "port" => quota.ports,
        "router" => quota.routers,
        "floatingip" => quota.floating_ips,
        "security_group" => quota.security_groups,
        "security_group_rule" => quota.security_group_rules,
        _ => None,
    };
    limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX))
}

fn used(world: &CloudState, project: &str, resource: &str) -> i64 {
    let neutron = &world.neutron;
    let table: &Table = match resource {
        "network" => &neutron.networks,
        "subnet" => &neutron.subnets,
        "port" => &neutron.ports,
        "router" => &neutron.routers,
        "floatingip" => &neutron.floating_ips,
        "security_group" => &neutron.groups,
        "security_group_rule" => &neutron.rules,
        _ => return 0,
    };
    i64::try_from(table.by("project_id", project).count()).unwrap_or(i64::MAX)
}

/// Checks the quota of the project for `more` objects of a type.
pub(super) fn check(world: &CloudState, project: &str, resource: &'static str, more: i64) -> Result<(), Refusal> {
    let limit = limit(world, project, resource);
    // Ports of services belong to no project.
    if limit < 0 || project.is_empty() || used(world, project, resource) + more <= limit {
        return Ok(());
    }
    Err(refusal(409, "OverQuota", format!("Quota exceeded for resources: ['{resource}'].")))
}

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    let denied = |rule: &str| refusal(403, "PolicyNotAuthorized", format!("rule:{rule} is disallowed by policy"));
    match (request.method.as_str(), rest) {
        ("GET", ["tenant" | "project"]) => Ok(Reply::ok(json!({"tenant": {"tenant_id": caller.project}}))),
        ("GET", []) => {
            if !caller.admin {
                return Err(denied("get_quota"));
            }
            let list: Vec<Value> = world
                .neutron
                .quotas
                .keys()
                .map(|project| json!({"tenant_id": project, "project_id": project}))
                .collect();
            Ok(Reply::ok(json!({"quotas": list})))
        }
        ("GET", [project, more @ ..]) => {
            if !caller.owns(project) {
                return Err(denied("get_quota"));
            }
            let entry = |resource: &&str| {
                let limit = limit(world, project, resource);
                let value = match more {
                    ["details"] => json!({"limit": limit, "used": used(world, project, resource), "reserved": 0}),
                    _ => json!(limit),
                };
                ((*resource).to_owned(), value)
            };
            let quota: serde_json::Map<String, Value> = RESOURCES.iter().map(entry).collect();
            Ok(Reply::ok(json!({"quota": quota})))
        }
        ("PUT", [project]) => {
            if !caller.admin {
                return Err(denied("update_quota"));
            }
            let body = object(request.json("Body contains invalid data")?);
            let Some(Value::Object(wanted)) = body.get("quota") else {
                return Err(refusal(400, "HTTPBadRequest", "Unable to find 'quota' in request body"));
            };
            let mut limits = world.neutron.quotas.get(*project).cloned().unwrap_or_default();
            for (resource, value) in wanted {
                if !RESOURCES.contains(&resource.as_str()) {
                    let message = format!("Unrecognized attribute(s) '{resource}'");
                    return Err(refusal(400, "HTTPBadRequest", message));
                }
                let number = integer(value).filter(|number| *number >= -1).ok_or_else(|| {
                    let message = format!("Invalid input for {resource}. Reason: '{value}' is not an integer.");
                    refusal(400, "HTTPBadRequest", message)
                })?;
                limits.insert(resource.clone(), number);
            }
            world.neutron.quotas.insert((*project).to_owned(), limits);
            let entry = |resource: &&str| ((*resource).to_owned(), json!(limit(world, project, resource)));
            let quota: serde_json::Map<String, Value> = RESOURCES.iter().map(entry).collect();
            Ok(Reply::ok(json!({"quota": quota})))
        }
        ("DELETE", [project]) => {
            if !caller.admin {
                return Err(denied("delete_quota"));
            }
            world.neutron.quotas.remove(*project);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_route()),
    }
}
