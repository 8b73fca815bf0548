//! Zaqar: the client names queues, and a queue exists as soon as it is used.

use serde_json::{Value, json};

use super::{NOUN, Noun};
use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::{Service, ServiceCall};
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

pub(super) const NOUNS: &[Noun] = &[Noun {
    service: Service::Messaging,
    path: &["queues", "*", "subscriptions"],
    many: "subscriptions",
    required: &["subscriber"],
    optional: &["ttl", "options"],
    update: "PATCH",
    changes: &["subscriber", "ttl", "options"],
    key: &["subscriber"],
    ..NOUN
}];

/// Queues, and signed URLs.
pub(super) fn route(
    world: &mut CloudState,
    request: &ServiceCall,
    caller: &Caller,
    segments: &[&str],
) -> Option<Outcome> {
    if request.header("client-id").is_none() {
        return Some(Err(Refusal::bad("The header Client-ID is required")));
    }
    match segments {
        ["queues", name] => Some(queue(world, request, caller, name)),
        ["queues", name, "messages"] => Some(messages(world, request, caller, name)),
        ["queues", name, "share"] if request.method == "POST" => Some(share(world, request, caller, name)),
        _ => None,
    }
}

fn queue(world: &mut CloudState, request: &ServiceCall, caller: &Caller, name: &str) -> Outcome {
    let key = format!("{}/{name}", caller.project);
    let row = world.nouns.rows.get(&key);
    match (request.method.as_str(), row) {
        ("PUT", found) => {
            let is_new = found.is_none();
            let metadata = if request.body.is_empty() { json!({}) } else { request.json("not JSON")? };
            let Value::Object(metadata) = metadata else { return Err(Refusal::bad("Metadata must be an object")) };
            if is_new {
                let mut row = Row::new();
                row.put("id", key);
                row.put("_noun", "messaging/queues");
                row.put("_id", name);
                row.extend(metadata);
                world.nouns.rows.insert(row);
            }
            Ok(Reply::empty(if is_new { 201 } else { 204 }))
        }
        ("GET", Some(row)) => {
            let mut row = public(row);
            row.remove("id");
            Ok(Reply::ok(Value::Object(row)))
        }
        ("PATCH", Some(row)) => {
            let mut row = row.clone();
            let Value::Array(patch) = request.json("not JSON")? else {
                return Err(Refusal::bad("The request body must be a JSON array"));
            };
            for change in &patch {
                let Some(key) = change["path"].as_str().and_then(|path| path.strip_prefix("/metadata/")) else {
                    return Err(Refusal::bad("A path begins with /metadata/"));
                };
                match change["op"].as_str() {
                    Some("add" | "replace") => row.put(key, change["value"].clone()),
                    Some("remove") if row.remove(key).is_some() => {}
                    _ => return Err(Refusal::conflict(format!("Can't apply the change of {key}"))),
                }
            }
            world.nouns.rows.insert(row);
            Ok(Reply::ok(json!({})))
        }
        ("DELETE", _) => {
            super::remove(world, &key);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::missing(format!("Queue {name} does not exist."))),
    }
}

/// The messages of a queue, which exists from the first one on.
fn messages(world: &mut CloudState, request: &ServiceCall, caller: &Caller, name: &str) -> Outcome {
    let key = format!("{}/{name}", caller.project);
    let mut row = world.nouns.rows.get(&key).cloned();
    let stored = row.as_ref().and_then(|row| row.get("_messages")?.as_array().cloned()).unwrap_or_default();
    if request.method != "POST" {
        return Ok(Reply::ok(json!({"messages": stored})));
    }
    let body = request.json("not JSON")?;
    let Some(new) = body["messages"].as_array().filter(|new| !new.is_empty()) else {
        return Err(Refusal::bad("No messages were found in the request body."));
    };
    if request.body.len() > 262_144 {
        return Err(Refusal::bad("Message collection size is too large. Max size 262144"));
    }
    let mut all = stored;
    for message in new {
        if !message["ttl"].as_u64().is_some_and(|ttl| (60..=1_209_600).contains(&ttl)) {
            return Err(Refusal::bad("The TTL for a message may not exceed 1209600 seconds, and must be at least 60."));
        }
        all.push(json!({"ttl": message["ttl"], "body": message["body"]}));
    }
    let row = row.get_or_insert_with(|| {
        let mut row = Row::new();
        row.put("id", key);
        row.put("_noun", "messaging/queues");
        row.put("_id", name);
        row
    });
    row.put("_messages", all);
    world.nouns.rows.insert(row.clone());
    let resources: Vec<String> = (0..new.len()).map(|number| format!("/v2/queues/{name}/messages/{number}")).collect();
    Ok(Reply::json(201, json!({"resources": resources})))
}

fn share(world: &CloudState, request: &ServiceCall, caller: &Caller, name: &str) -> Outcome {
    let body = request.json("not JSON")?;
    let paths = body["paths"].as_array().cloned().unwrap_or_else(|| vec![json!("messages")]);
    let paths: Vec<String> =
        paths.iter().filter_map(Value::as_str).map(|path| format!("/v2/queues/{name}/{path}")).collect();
    let methods = body.get("methods").filter(|methods| !methods.is_null()).cloned().unwrap_or_else(|| json!(["GET"]));
    Ok(Reply::ok(json!({
        "project": caller.project, "paths": paths, "methods": methods,
        "expires": world.stamp(), "signature": "6a63d63242ebd18c3518871dda6fdcb6273db2672c599bf985469241e9a1c799",
    })))
}
