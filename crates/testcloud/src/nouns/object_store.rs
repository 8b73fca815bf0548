//! Swift: containers, objects with old versions, accounts and temporary URLs.

use base64::Engine as _;
use hmac::{Hmac, Mac as _};
use serde_json::json;
use sha2::Sha256;

use crate::keystone::Caller;
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row};

const ACCOUNTS: &str = "object-store/account";
const CONTAINERS: &str = "object-store/containers";
const OBJECTS: &str = "object-store/objects";

/// Headers of an account that hold the keys of temporary URLs.
const KEYS: [&str; 2] = ["x-account-meta-temp-url-key", "x-account-meta-temp-url-key-2"];

fn missing() -> Refusal {
    Refusal::missing("The resource could not be found.")
}

fn account_key(account: &str) -> String {
    format!("account {account}")
}

pub(super) fn serve(world: &mut CloudState, request: &ServiceCall, caller: &Caller, segments: &[&str]) -> Outcome {
    match segments {
        [account, ..] if *account != format!("AUTH_{}", caller.project) => {
            Err(Refusal::forbidden("Access was denied."))
        }
        [account] => serve_account(world, request, account),
        [account, name] => serve_container(world, request, &format!("{account}/{name}"), name),
        [account, name, object @ ..] => serve_object(world, request, &format!("{account}/{name}"), &object.join("/")),
        [] => Err(Refusal::no_route()),
    }
}

/// A request with a temporary URL, which needs no token; `None` if it is none.
pub(super) fn serve_signed(world: &mut CloudState, request: &ServiceCall) -> Option<Outcome> {
    let signature = request.param("temp_url_sig")?;
    let refused = || Some(Err(Refusal::new(401, "Unauthorized", "Temp URL invalid")));
    let Some(expires) = request.param("temp_url_expires").and_then(|text| text.parse::<i64>().ok()) else {
        return refused();
    };
    let segments = request.segments();
    let [account, name, object @ ..] = segments.as_slice() else { return refused() };
    let path = format!("/v1{}", request.local_path());
    let row = world.nouns.rows.get(&account_key(account));
    // A URL for PUT or POST also allows HEAD, as in Swift.
    let methods = if request.method == "HEAD" { vec!["HEAD", "GET", "PUT", "POST"] } else { vec![&*request.method] };
    let is_valid = row.is_some_and(|row| {
        let keys = KEYS.iter().map(|key| row.text(key)).filter(|key| !key.is_empty());
        keys.flat_map(|key| methods.iter().map(move |method| (key, method)))
            .any(|(key, method)| is_signature(signature, key, &format!("{method}\n{expires}\n{path}")))
    });
    if object.is_empty() || !is_valid || world.now().as_second() >= expires {
        return refused();
    }
    Some(serve_object(world, request, &format!("{account}/{name}"), &object.join("/")))
}

/// SHA-256 in hexadecimal digits, or in base64 after its name.
fn is_signature(signature: &str, key: &str, text: &str) -> bool {
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(key.as_bytes()) else { return false };
    let sum = mac.chain_update(text).finalize().into_bytes();
    let named = format!("sha256:{}", base64::engine::general_purpose::STANDARD.encode(sum));
    signature == format!("{sum:x}") || signature == named
}

fn serve_account(world: &mut CloudState, request: &ServiceCall, account: &str) -> Outcome {
    let key = account_key(account);
    match request.method.as_str() {
        "POST" => {
            let mut row = world.nouns.rows.get(&key).cloned().unwrap_or_default();
            row.put("id", key);
            row.put("_noun", ACCOUNTS);
            row.put("_unlisted", true);
            row.extend(headers(request, "x-account-"));
            world.nouns.rows.insert(row);
            Ok(Reply::empty(204))
        }
        "HEAD" => {
            let row = world.nouns.rows.get(&key);
            Ok(Reply::empty(204).headers(row.into_iter().flat_map(|row| shown(row, "x-account-"))))
        }
        _ => Err(Refusal::no_method()),
    }
}

fn serve_container(world: &mut CloudState, request: &ServiceCall, key: &str, name: &str) -> Outcome {
    match request.method.as_str() {
        "POST" => {
            world.nouns.rows.get(key).ok_or_else(missing)?;
            let changed = headers(request, "x-container-");
            world.nouns.rows.edit(key, |row| row.extend(changed));
            Ok(Reply::empty(204))
        }
        "PUT" => {
            let old = world.nouns.rows.get(key).cloned();
            let status = if old.is_some() { 202 } else { 201 };
            let mut row = old.unwrap_or_default();
            row.put("id", key);
            row.put("name", name);
            row.put("_noun", CONTAINERS);
            row.extend(headers(request, "x-container-"));
            row.extend(headers(request, "x-versions-"));
            world.nouns.rows.insert(row);
            Ok(Reply::empty(status))
        }
        "GET" => {
            world.nouns.rows.get(key).ok_or_else(missing)?;
            let prefix = request.param("prefix").unwrap_or_default();
            let named = |name: &String| name.starts_with(prefix);
            let objects: Vec<_> =
                names(world, key).into_iter().filter(named).map(|name| json!({"name": name})).collect();
            Ok(Reply::ok(json!(objects)))
        }
        "HEAD" => {
            let row = world.nouns.rows.get(key).ok_or_else(missing)?;
            let rows = world.nouns.rows.by("_parent", key);
            let sizes: Vec<usize> = rows.map(|row| row.text("_body").len()).collect();
            let reply = Reply::empty(204).headers(shown(row, "x-container-"));
            let reply = reply.header("x-container-object-count", sizes.len().to_string());
            Ok(reply.header("x-container-bytes-used", sizes.iter().sum::<usize>().to_string()))
        }
        "DELETE" => {
            world.nouns.rows.get(key).ok_or_else(missing)?;
            if !names(world, key).is_empty() {
                return Err(Refusal::conflict("There was a conflict when trying to complete your request."));
            }
            world.nouns.rows.remove(key);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_method()),
    }
}

/// The names of the objects in a container, sorted.
fn names(world: &CloudState, container: &str) -> Vec<String> {
    let mut names: Vec<String> =
        world.nouns.rows.by("_parent", container).map(|row| row.text("name").to_owned()).collect();
    names.sort_unstable();
    names
}

fn serve_object(world: &mut CloudState, request: &ServiceCall, container: &str, name: &str) -> Outcome {
    let row = world.nouns.rows.get(container).ok_or_else(missing)?;
    let key = format!("{container}/{name}");
    // Old versions are in the same account.
    let account = container.split('/').next().unwrap_or_default();
    let versions = row.get("x-versions-location").and_then(|name| name.as_str());
    let versions = versions.map(|versions| format!("{account}/{versions}"));
    let old = world.nouns.rows.get(&key).cloned();
    let prefix = format!("{:03x}{name}/", name.len());
    match request.method.as_str() {
        "PUT" => {
            let has_length = ["content-length", "transfer-encoding"].iter().any(|name| request.header(name).is_some());
            if request.body.is_empty() && !has_length {
                return Err(Refusal::new(411, "LengthRequired", "Missing Content-Length header."));
            }
            if let (Some(versions), Some(old)) = (versions, &old) {
                put(world, &versions, &format!("{prefix}{}", old.text("_timestamp")), old.text("_body"));
            }
            put(world, container, name, &String::from_utf8_lossy(&request.body));
            Ok(Reply::empty(201))
        }
        "GET" | "HEAD" => {
            let object = old.ok_or_else(missing)?;
            let reply = Reply::text(200, object.text("_body").to_owned());
            let reply = reply.header("x-timestamp", object.text("_timestamp"));
            Ok(reply.header("last-modified", object.text("_modified")))
        }
        "DELETE" => {
            old.ok_or_else(missing)?;
            world.nouns.rows.remove(&key);
            // The last old version is restored.
            let versions = versions.unwrap_or_default();
            let last = names(world, &versions).into_iter().rfind(|old| old.starts_with(&prefix));
            if let Some(last) = last
                && let Some(row) = world.nouns.rows.remove(&format!("{versions}/{last}"))
            {
                put(world, container, name, row.text("_body"));
            }
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_method()),
    }
}

fn put(world: &mut CloudState, container: &str, name: &str, body: &str) {
    let mut row = Row::new();
    row.put("id", format!("{container}/{name}"));
    row.put("name", name);
    row.put("_noun", OBJECTS);
    row.put("_parent", container);
    row.put("_body", body);
    // In whole seconds, rounded up, as in Swift.
    let modified = world.now().as_second().saturating_add(i64::from(world.now().subsec_nanosecond() > 0));
    let modified = jiff::Timestamp::from_second(modified).unwrap_or_default();
    // In hundred thousandths of a second, and later than that of the version before.
    let before = world.nouns.rows.get(&format!("{container}/{name}"));
    let before = before.and_then(|row| row.text("_timestamp").replace('.', "").parse::<i64>().ok()).unwrap_or(0);
    let time = (world.now().as_microsecond() / 10).max(before.saturating_add(1));
    row.put("_timestamp", format!("{:010}.{:05}", time / 100_000, time % 100_000));
    row.put("_modified", modified.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
    world.nouns.rows.insert(row);
}

/// The headers of an account or container that have a value.
fn shown<'a>(row: &'a Row, prefix: &'a str) -> impl Iterator<Item = (String, String)> + 'a {
    let own = row.iter().filter(move |(name, _)| name.starts_with(prefix));
    own.filter_map(|(name, value)| Some((name.clone(), value.as_str().filter(|value| !value.is_empty())?.to_owned())))
}

/// The headers of a request that begin with a prefix. WSGI makes no difference between underscores and dashes.
fn headers(request: &ServiceCall, prefix: &str) -> Row {
    let own = request.headers.iter().filter(|(name, _)| name.as_str().starts_with(prefix));
    own.filter_map(|(name, value)| Some((name.as_str().replace('_', "-"), json!(value.to_str().ok()?)))).collect()
}
