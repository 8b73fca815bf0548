//! Server groups.

use serde_json::{Value, json};

use super::{Call, check_fields, invalid, name_field, page, whole_number};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::python;
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

const POLICIES: [&str; 4] = ["anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"];

pub(super) fn route(world: &mut CloudState, call: Call<'_>, rest: &[&str]) -> Outcome {
    match (call.request.method.as_str(), rest) {
        ("GET", []) => {
            let rows: Vec<&Row> = if call.request.param("all_projects").is_some() && call.caller.admin {
                world.nova.groups.iter().collect()
            } else {
                world.nova.groups.by("project_id", &call.caller.project).collect()
            };
            let (rows, _) = page(world, call.request, rows, "marker")?;
            let rows: Vec<Row> = rows.into_iter().map(|row| show(world, call, row)).collect();
            Ok(Reply::ok(json!({"server_groups": rows})))
        }
        ("GET", [id]) => Ok(Reply::ok(json!({"server_group": show(world, call, find(world, call, id)?)}))),
        ("POST", []) => create(world, call),
        ("DELETE", [id]) => {
            find(world, call, id)?;
            world.nova.groups.remove(id);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_method()),
    }
}

fn find<'a>(world: &'a CloudState, call: Call<'_>, id: &str) -> Result<&'a Row, Refusal> {
    let row = world.nova.groups.get(id).filter(|row| call.caller.owns(row.text("project_id")));
    row.ok_or_else(|| Refusal::missing(format!("Instance group {id} could not be found.")))
}

fn show(world: &CloudState, call: Call<'_>, row: &Row) -> Row {
    let mut seen = public(row);
    let members: Vec<&str> =
        world.nova.servers.by("_server_group", row.text("id")).map(|server| server.text("id")).collect();
    seen.put("members", members);
    if call.minor >= 64 {
        for field in ["policies", "metadata"] {
            seen.remove(field);
        }
    } else {
        for field in ["policy", "rules"] {
            seen.remove(field);
        }
    }
    if call.minor < 13 {
        for field in ["project_id", "user_id"] {
            seen.remove(field);
        }
    }
    seen
}

fn create(world: &mut CloudState, call: Call<'_>) -> Outcome {
    let body = call.request.member("server_group")?;
    let policy = if call.minor >= 64 {
        check_fields("server_group", &body, &["name", "policy", "rules"], &["name", "policy"])?;
        body.get("policy").cloned().unwrap_or_default()
    } else {
        check_fields("server_group", &body, &["name", "policies"], &["name", "policies"])?;
        match body.list("policies") {
            [one] => one.clone(),
            _ => {
                return Err(invalid(
                    "policies",
                    &body["policies"],
                    &format!("{} is too short", python(&body["policies"])),
                ));
            }
        }
    };
    let name = name_field(&body, "name", 255)?;
    let soft = call.minor >= 15;
    let known =
        policy.as_str().is_some_and(|policy| POLICIES.contains(&policy) && (soft || !policy.starts_with("soft")));
    if !known {
        let reason = format!(
            "{} is not one of ['anti-affinity', 'affinity', 'soft-anti-affinity', 'soft-affinity']",
            python(&policy)
        );
        return Err(invalid("policy", &policy, &reason));
    }
    let rules = body.get("rules").and_then(Value::as_object).cloned().unwrap_or_default();
    check_fields("rules", &rules, &["max_server_per_host"], &[])?;
    whole_number(&rules, "max_server_per_host", 1)?;
    if !rules.is_empty() && policy != "anti-affinity" {
        return Err(Refusal::bad("Only anti-affinity policy supports rules."));
    }
    let held = world.nova.groups.by("project_id", &call.caller.project).count();
    if world.options.quota.server_groups.is_some_and(|limit| u64::try_from(held).unwrap_or(u64::MAX) >= limit) {
        return Err(Refusal::forbidden("Quota exceeded, too many server groups."));
    }
    let mut row = Row::new();
    let id = world.uuid();
    row.put("id", id.clone());
    row.put("name", name);
    row.put("policies", json!([policy]));
    row.put("policy", policy);
    row.put("rules", rules);
    row.put("metadata", json!({}));
    row.put("project_id", call.caller.project.clone());
    row.put("user_id", call.caller.user.clone());
    world.nova.groups.insert(row);
    Ok(Reply::ok(json!({"server_group": show(world, call, find(world, call, &id)?)})))
}
