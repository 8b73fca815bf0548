//! Host aggregates.

use serde_json::{Value, json};

use super::build::HOSTS;
use super::{Call, admin_only};
use crate::reply::{Outcome, Refusal, Reply};
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

const NOUN: &str = "compute/os-aggregates";

fn find<'a>(world: &'a CloudState, id: &str) -> Result<&'a Row, Refusal> {
    let missing = || Refusal::missing(format!("Aggregate {id} could not be found."));
    world.nouns.rows.get(&format!("aggregate {id}")).ok_or_else(missing)
}

fn show(row: &Row) -> Row {
    let mut row = public(row);
    row.put("id", row.get("number").cloned().unwrap_or_default());
    row
}

pub(super) fn route(world: &mut CloudState, call: Call<'_>, rest: &[&str]) -> Outcome {
    admin_only(call.caller, "os-aggregates:index")?;
    match (call.request.method.as_str(), rest) {
        ("GET", []) => {
            let rows: Vec<Row> = world.nouns.rows.by("_noun", NOUN).map(show).collect();
            Ok(Reply::ok(json!({"aggregates": rows})))
        }
        ("GET", [id]) => Ok(Reply::ok(json!({"aggregate": show(find(world, id)?)}))),
        ("POST", []) => {
            let body = call.request.member("aggregate")?;
            let name = body.text("name").to_owned();
            if world.nouns.rows.by("_noun", NOUN).any(|row| row.text("name") == name) {
                return Err(Refusal::conflict(format!("Aggregate {name} already exists.")));
            }
            let number = world.nouns.rows.by("_noun", NOUN).count() + 1;
            let mut row = body;
            row.put("id", format!("aggregate {number}"));
            row.put("number", number);
            row.put("hosts", json!([]));
            row.put("metadata", json!({}));
            row.put("_noun", NOUN);
            world.nouns.rows.insert(row.clone());
            Ok(Reply::ok(json!({"aggregate": show(&row)})))
        }
        ("PUT", [id]) => {
            let key = find(world, id)?.text("id").to_owned();
            let body = call.request.member("aggregate")?;
            if let Some(unknown) = body.keys().find(|key| !matches!(key.as_str(), "name" | "availability_zone")) {
                return Err(Refusal::bad(format!(
                    "Additional properties are not allowed ('{unknown}' was unexpected)"
                )));
            }
            world.nouns.rows.edit(&key, |row| row.extend(body));
            Ok(Reply::ok(json!({"aggregate": show(find(world, id)?)})))
        }
        ("DELETE", [id]) => {
            let row = find(world, id)?;
            if !row.list("hosts").is_empty() {
                return Err(Refusal::bad(format!("Cannot remove aggregate {id}: it is not empty.")));
            }
            let key = row.text("id").to_owned();
            world.nouns.rows.remove(&key);
            Ok(Reply::empty(200))
        }
        ("POST", [id, "action"]) => act(world, call, id),
        _ => Err(Refusal::no_route()),
    }
}

fn act(world: &mut CloudState, call: Call<'_>, id: &str) -> Outcome {
    let body = call.request.json("Malformed request body")?;
    let row = find(world, id)?;
    let (key, hosts) = (row.text("id").to_owned(), row.texts("hosts"));
    let mut metadata = row.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let host = |action: &str| body[action]["host"].as_str().map(str::to_owned);
    match (host("add_host"), host("remove_host")) {
        (Some(host), _) if !HOSTS.contains(&host.as_str()) => {
            return Err(Refusal::missing(format!("Compute host {host} could not be found.")));
        }
        (Some(host), _) if hosts.contains(&host) => return Err(Refusal::conflict("The host is a member already.")),
        (Some(host), _) => drop(world.nouns.rows.edit(&key, |row| row.push("hosts", host))),
        (_, Some(host)) if hosts.contains(&host) => {
            world.nouns.rows.edit(&key, |row| row.drop_from("hosts", |own| *own == host));
        }
        (_, Some(host)) => return Err(Refusal::missing(format!("Aggregate {id} has no host {host}."))),
        _ => {
            for (name, value) in body["set_metadata"]["metadata"].as_object().into_iter().flatten() {
                if value.is_null() {
                    metadata.remove(name);
                } else {
                    metadata.put(name, value.clone());
                }
            }
            world.nouns.rows.edit(&key, |row| row.put("metadata", metadata));
        }
    }
    Ok(Reply::ok(json!({"aggregate": show(find(world, id)?)})))
}
