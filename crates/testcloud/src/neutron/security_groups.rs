//! Security groups.

use serde_json::{Value, json};

use super::attributes::{Attribute, Kind, Noun, Post};
use super::{body, create_all, list, object, quotas, refusal, rules, stamp_new, touch};
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

pub(super) const GROUP: Noun = Noun {
    one: "security_group",
    many: "security_groups",
    attributes: &[
        Attribute::new("name", Kind::Text(255), Post::Empty),
        Attribute::new("stateful", Kind::Bool, Post::True),
        Attribute::new("description", Kind::Text(255), Post::Empty),
        Attribute::own("shared"),
        Attribute::own("security_group_rules"),
    ],
};

pub(super) fn route(world: &mut CloudState, request: &ServiceCall, caller: &Caller, rest: &[&str]) -> Outcome {
    if !caller.project.is_empty() {
        default_group(world, &caller.project.clone());
    }
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            let sees = |row: &Row| caller.owns(row.text("project_id"));
            list::answer(world, request, &GROUP, &world.neutron.groups, sees, show)
        }
        ("GET", [id]) => {
            let row = visible(world, caller, id)?;
            Ok(Reply::ok(json!({"security_group": list::pick(request, show(world, row))})))
        }
        ("POST", []) => create_all(world, request, &GROUP, |world, body| create(world, caller, body)),
        ("PUT", [id]) => {
            let body = object(body(request, &GROUP)?);
            let default = visible(world, caller, id)?.text("name") == "default";
            let change = GROUP.change(&body, caller)?;
            if default && change.contains_key("name") {
                let message = "Updating default security group not allowed.";
                return Err(refusal(409, "SecurityGroupCannotUpdateDefault", message));
            }
            let now = world.stamp();
            world.neutron.groups.edit(id, |row| {
                row.extend(change);
                touch(row, now);
            });
            Ok(Reply::ok(json!({"security_group": show(world, visible(world, caller, id)?)})))
        }
        ("DELETE", [id]) => {
            let row = visible(world, caller, id)?;
            if row.text("name") == "default" && !caller.admin {
                let message = "Insufficient rights for removing default security group.";
                return Err(refusal(409, "SecurityGroupCannotRemoveDefault", message));
            }
            if world.neutron.ports.by("security_groups", id).next().is_some() {
                return Err(refusal(409, "SecurityGroupInUse", format!("Security Group {id} in use.")));
            }
            let rules = &world.neutron.rules;
            let ended = rules.by("security_group_id", id).chain(rules.by("remote_group_id", id));
            let ended: Vec<String> = ended.map(|row| row.text("id").to_owned()).collect();
            for rule in ended {
                world.neutron.rules.remove(&rule);
            }
            world.neutron.groups.remove(id);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_method()),
    }
}

pub(super) fn missing(id: &str) -> Refusal {
    refusal(404, "SecurityGroupNotFound", format!("Security group {id} does not exist"))
}

/// The group, if it belongs to the caller.
pub(super) fn visible<'a>(world: &'a CloudState, caller: &Caller, id: &str) -> Result<&'a Row, Refusal> {
    world.neutron.groups.get(id).filter(|row| caller.owns(row.text("project_id"))).ok_or_else(|| missing(id))
}

fn show(world: &CloudState, row: &Row) -> Row {
    let mut row = public(row);
    let rules: Vec<Value> =
        world.neutron.rules.by("security_group_id", row.text("id")).map(|rule| Value::Object(public(rule))).collect();
    row.put("security_group_rules", rules);
    row
}

fn create(world: &mut CloudState, caller: &Caller, body: &Row) -> Result<Row, Refusal> {
    let row = GROUP.creation(body, caller)?;
    let project = row.text("project_id").to_owned();
    default_group(world, &project);
    if row.text("name") == "default" {
        let message = "Default security group already exists.";
        return Err(refusal(409, "SecurityGroupDefaultAlreadyExists", message));
    }
    quotas::check(world, &project, "security_group", 1)?;
    quotas::check(world, &project, "security_group_rule", 2)?;
    let id = add(world, row);
    Ok(show(world, visible(world, caller, &id)?))
}

/// Adds a group with the two default egress rules.
fn add(world: &mut CloudState, mut row: Row) -> String {
    row.put("shared", false);
    let (project, id) = (row.text("project_id").to_owned(), stamp_new(world, &mut row));
    world.neutron.groups.insert(row);
    for version in ["IPv4", "IPv6"] {
        rules::add(world, &project, &id, "egress", version, None);
    }
    id
}

/// The ID of a project's default group, which is created when the project first uses the network.
pub(crate) fn default_group(world: &mut CloudState, project: &str) -> String {
    let found = world.neutron.groups.by("project_id", project).find(|row| row.text("name") == "default");
    if let Some(row) = found {
        return row.text("id").to_owned();
    }
    let mut row = Row::new();
    row.put("name", "default");
    row.put("stateful", true);
    row.put("description", "Default security group");
    row.put("project_id", project);
    row.put("tenant_id", project);
    let id = add(world, row);
    for version in ["IPv4", "IPv6"] {
        rules::add(world, project, &id, "ingress", version, Some(&id));
    }
    id
}

/// The groups of a project with this ID or name.
pub(crate) fn find_group(world: &CloudState, project: &str, wanted: &str) -> Vec<String> {
    let groups = &world.neutron.groups;
    let own = |row: &&Row| row.text("project_id") == project;
    match groups.get(wanted).filter(own) {
        Some(row) => vec![row.text("id").to_owned()],
        None => groups.by("name", wanted).filter(own).map(|row| row.text("id").to_owned()).collect(),
    }
}
