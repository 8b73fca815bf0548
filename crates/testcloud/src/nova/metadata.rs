//! Metadata and tags of servers.

use serde_json::{Value, json};

use super::{Call, servers, text_map};
use crate::reply::{Outcome, Refusal, Reply};
use crate::state::CloudState;
use crate::table::{Fields, Row};

pub(super) fn route(world: &mut CloudState, call: Call<'_>, id: &str, rest: &[&str]) -> Outcome {
    let mut metadata =
        servers::find(world, call, id)?.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let missing = || Refusal::missing("Metadata item was not found");
    let given = |name: &str| -> Result<Row, Refusal> {
        match call.request.json("Malformed request body")? {
            Value::Object(body) if body.contains_key(name) => text_map(&body, name),
            _ => Err(Refusal::bad(format!("'{name}' is a required property"))),
        }
    };
    let reply = match (call.request.method.as_str(), rest) {
        ("GET", []) => return Ok(Reply::ok(json!({"metadata": metadata}))),
        ("GET", [key]) => {
            let value = metadata.get(*key).ok_or_else(missing)?;
            return Ok(Reply::ok(json!({"meta": {*key: value}})));
        }
        ("POST", []) => {
            metadata.extend(given("metadata")?);
            Reply::ok(json!({"metadata": metadata}))
        }
        ("PUT", []) => {
            metadata = given("metadata")?;
            Reply::ok(json!({"metadata": metadata}))
        }
        ("PUT", [key]) => {
            let item = given("meta")?;
            if !item.contains_key(*key) || item.len() != 1 {
                return Err(Refusal::bad("ServiceCall body and URI mismatch"));
            }
            metadata.extend(item.clone());
            Reply::ok(json!({"meta": item}))
        }
        ("DELETE", [key]) => {
            metadata.remove(*key).ok_or_else(missing)?;
            Reply::empty(204)
        }
        _ => return Err(Refusal::no_method()),
    };
    let now = world.stamp();
    world.nova.servers.edit(id, |row| {
        row.put("metadata", metadata);
        row.put("updated", now);
    });
    Ok(reply)
}

pub(super) fn tags(world: &mut CloudState, call: Call<'_>, id: &str, rest: &[&str]) -> Outcome {
    if call.minor < 26 {
        return Err(Refusal::no_route());
    }
    let tags = servers::find(world, call, id)?.texts("tags");
    let missing = |tag: &str| Refusal::missing(format!("Server {id} has no tag '{tag}'"));
    let edit = |world: &mut CloudState, change: &dyn Fn(&mut Row)| world.nova.servers.edit(id, |row| change(row));
    match (call.request.method.as_str(), rest) {
        ("GET", []) => Ok(Reply::ok(json!({"tags": tags}))),
        ("GET", [tag]) => {
            tags.iter().find(|own| own == tag).ok_or_else(|| missing(tag))?;
            Ok(Reply::empty(204))
        }
        ("PUT", []) => {
            let body = call.request.json("Malformed request body")?;
            let wanted = body.get("tags").and_then(Value::as_array).cloned();
            let wanted = wanted.ok_or_else(|| Refusal::bad("'tags' is a required property"))?;
            edit(world, &|row| row.put("tags", wanted.clone()));
            Ok(Reply::ok(json!({"tags": wanted})))
        }
        ("PUT", [tag]) => {
            if tags.iter().any(|own| own == tag) {
                return Ok(Reply::empty(204));
            }
            edit(world, &|row| row.push("tags", *tag));
            Ok(Reply::empty(201))
        }
        ("DELETE", []) => {
            edit(world, &|row| row.put("tags", json!([])));
            Ok(Reply::empty(204))
        }
        ("DELETE", [tag]) => {
            tags.iter().find(|own| own == tag).ok_or_else(|| missing(tag))?;
            edit(world, &|row| row.drop_from("tags", |own| own == tag));
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_method()),
    }
}
