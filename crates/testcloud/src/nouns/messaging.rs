//! Zaqar: the client names queues, and a queue exists as soon as it is used.

use hmac::{Hmac, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

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

/// The key of signatures.
const KEY: &[u8] = b"testcloud";

/// Seconds for which a message is kept, at most.
const MAX_LIFE: i64 = 1_209_600;

/// A request with a signature, which needs no token; `None` if it is none.
pub(super) fn serve_signed(world: &mut CloudState, request: &ServiceCall) -> Option<Outcome> {
    let given = request.header("url-signature")?;
    let header = |name: &str| request.header(name).unwrap_or_default().to_owned();
    let project = header("x-project-id");
    let (methods, paths, expires) = (header("url-methods"), header("url-paths"), header("url-expires"));
    let refused = || Some(Err(Refusal::missing("The resource could not be found.")));
    let own = format!("/v2{}", request.local_path());
    let is_allowed =
        methods.split(',').any(|method| method == request.method) && paths.split(',').any(|path| path == own);
    let has_expired = expires
        .parse::<jiff::civil::DateTime>()
        .ok()
        .and_then(|time| time.to_zoned(jiff::tz::TimeZone::UTC).ok())
        .is_none_or(|time| time.timestamp() <= world.now());
    if !is_allowed || has_expired || signature(&project, &methods, &paths, &expires) != given {
        return refused();
    }
    route(world, request, &Caller::service(&project), &request.segments()).or_else(refused)
}

fn signature(project: &str, methods: &str, paths: &str, expires: &str) -> String {
    let text = [project, methods, paths, expires].join("\n");
    // HMAC accepts keys of every length.
    Hmac::<Sha256>::new_from_slice(KEY)
        .map(|mac| format!("{:x}", mac.chain_update(text).finalize().into_bytes()))
        .unwrap_or_default()
}

/// Queues, messages, and signed URLs.
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
        ["queues", name, "purge"] if request.method == "POST" => Some(purge(world, request, caller, name)),
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
                let mut row = new_queue(&key, name);
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

fn new_queue(key: &str, name: &str) -> Row {
    let mut row = Row::new();
    row.put("id", key);
    row.put("_noun", "messaging/queues");
    row.put("_id", name);
    row
}

fn messages(world: &mut CloudState, request: &ServiceCall, caller: &Caller, name: &str) -> Outcome {
    let key = format!("{}/{name}", caller.project);
    let mut row = world.nouns.rows.get(&key).cloned();
    let mut stored = row.as_ref().and_then(|row| row.get("_messages")?.as_array().cloned()).unwrap_or_default();
    let href = |message: &Value| format!("/v2/queues/{name}/messages/{}", message["id"].as_str().unwrap_or_default());
    match request.method.as_str() {
        "GET" => {
            // The messages of a client are not listed for itself.
            let own = request.header("client-id").unwrap_or_default();
            let is_listed = |message: &Value| request.switch("echo") || message["client"] != own;
            let limit = request.param("limit").and_then(|limit| limit.parse().ok()).unwrap_or(10);
            let after = request.param("marker").and_then(|marker| marker.parse::<usize>().ok()).unwrap_or(0);
            // After the first message, Zaqar on Redis lists it again.
            let after = if after == 1 { 0 } else { after };
            let page: Vec<(usize, &Value)> =
                stored.iter().enumerate().skip(after).filter(|(_, one)| is_listed(one)).take(limit).collect();
            let shown: Vec<Value> = page.iter().map(|(_, one)| view(one, &href)).collect();
            let links = page.last().map(|(last, _)| {
                json!({"rel": "next", "href": format!("/v2/queues/{name}/messages?marker={}&limit={limit}", last + 1)})
            });
            Ok(Reply::ok(json!({"messages": shown, "links": links.into_iter().collect::<Vec<_>>()})))
        }
        "POST" => {
            if request.body.len() > 262_144 {
                return Err(Refusal::bad("Message collection size is too large. Max size 262144"));
            }
            let body = request.json("not JSON")?;
            let Some(new) = body["messages"].as_array().filter(|new| !new.is_empty()) else {
                return Err(Refusal::bad("No messages could be enqueued."));
            };
            let mut made = Vec::new();
            for message in new {
                let life = message.get("ttl").map_or(Some(3600), Value::as_i64);
                if message.get("body").is_none() || !life.is_some_and(|life| (60..=MAX_LIFE).contains(&life)) {
                    return Err(Refusal::bad("A message has a body, and a TTL between 60 and 1209600 seconds"));
                }
                let id = world.hex_id();
                let client = request.header("client-id").unwrap_or_default();
                let message = json!({"id": id, "body": message["body"], "ttl": life, "client": client});
                made.push(href(&message));
                stored.push(message);
            }
            let mut row = row.take().unwrap_or_else(|| new_queue(&key, name));
            row.put("_messages", stored);
            world.nouns.rows.insert(row);
            Ok(Reply::created(json!({"resources": made})))
        }
        "DELETE" => {
            let Some(count) = request.param("pop").and_then(|count| count.parse::<usize>().ok()) else {
                return Err(Refusal::bad("The request should have either \"ids\" or \"pop\" parameter"));
            };
            let popped: Vec<Value> = stored.drain(..count.min(stored.len())).map(|one| view(&one, &href)).collect();
            if let Some(mut row) = row {
                row.put("_messages", stored);
                world.nouns.rows.insert(row);
            }
            Ok(Reply::ok(json!({ "messages": popped })))
        }
        _ => Err(Refusal::no_method()),
    }
}

fn view(message: &Value, href: &dyn Fn(&Value) -> String) -> Value {
    json!({"id": message["id"], "href": href(message), "ttl": message["ttl"], "age": 0, "body": message["body"]})
}

fn purge(world: &mut CloudState, request: &ServiceCall, caller: &Caller, name: &str) -> Outcome {
    let body = request.json("not JSON")?;
    let kinds: Vec<&str> = body["resource_types"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if kinds != ["messages"] {
        return Err(Refusal::bad("Resource types must be a sub set of messages"));
    }
    let key = format!("{}/{name}", caller.project);
    world.nouns.rows.edit(&key, |row| row.put("_messages", json!([])));
    Ok(Reply::empty(204))
}

fn share(world: &CloudState, request: &ServiceCall, caller: &Caller, name: &str) -> Outcome {
    let body = request.json("not JSON")?;
    let list = |key: &str, default: &str| match body.get(key).and_then(Value::as_array) {
        Some(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => vec![default.to_owned()],
    };
    let methods: Vec<String> = list("methods", "GET");
    let paths: Vec<String> = list("paths", "messages").iter().map(|path| format!("/v2/queues/{name}/{path}")).collect();
    let a_day_later = || {
        let end = world.now().as_second().saturating_add(86_400);
        jiff::Timestamp::from_second(end).unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%S").to_string()
    };
    let expires = body["expires"].as_str().map_or_else(a_day_later, str::to_owned);
    let signature = signature(&caller.project, &methods.join(","), &paths.join(","), &expires);
    Ok(Reply::ok(json!({
        "project": caller.project, "paths": paths, "methods": methods, "expires": expires, "signature": signature,
    })))
}
