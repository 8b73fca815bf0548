//! Key pairs. They belong to users, not to projects.

use serde_json::{Value, json};

use super::{Call, admin_only, check_fields, invalid, name_field};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::python;
use crate::state::CloudState;
use crate::table::{Fields, Row, public};

pub(super) fn route(world: &mut CloudState, call: Call<'_>, rest: &[&str]) -> Outcome {
    let user = match call.request.param("user_id") {
        Some(user) if user != call.caller.user && call.minor >= 10 => {
            admin_only(call.caller, "os-keypairs:show")?;
            user.to_owned()
        }
        _ => call.caller.user.clone(),
    };
    let missing = |name: &str| Refusal::missing(format!("Keypair {name} not found for user {user}"));
    match (call.request.method.as_str(), rest) {
        ("GET", []) => {
            let brief = |row: &Row| {
                let mut brief = public(row);
                brief.retain(|field, _| matches!(field.as_str(), "name" | "public_key" | "fingerprint" | "type"));
                if call.minor < 2 {
                    brief.remove("type");
                }
                json!({"keypair": brief})
            };
            let rows: Vec<Value> = world.nova.keypairs.by("user_id", &user).map(brief).collect();
            Ok(Reply::ok(json!({"keypairs": rows})))
        }
        ("POST", []) => create(world, call),
        ("GET", [name]) => {
            let row = world.nova.keypairs.get(&key(&user, name)).ok_or_else(|| missing(name))?;
            let mut seen = public(row);
            if call.minor < 2 {
                seen.remove("type");
            }
            Ok(Reply::ok(json!({"keypair": seen})))
        }
        ("DELETE", [name]) => {
            world.nova.keypairs.remove(&key(&user, name)).ok_or_else(|| missing(name))?;
            Ok(Reply::empty(if call.minor >= 2 { 204 } else { 202 }))
        }
        _ => Err(Refusal::no_method()),
    }
}

fn key(user: &str, name: &str) -> String {
    format!("{user}/{name}")
}

/// Whether the user has a key pair with this name.
pub(super) fn exists(world: &CloudState, user: &str, name: &str) -> bool {
    world.nova.keypairs.get(&key(user, name)).is_some()
}

fn create(world: &mut CloudState, call: Call<'_>) -> Outcome {
    let body = call.request.member("keypair")?;
    let fields: &[&str] = match call.minor {
        ..2 => &["name", "public_key"],
        2..10 => &["name", "public_key", "type"],
        _ => &["name", "public_key", "type", "user_id"],
    };
    let required: &[&str] = if call.minor >= 92 { &["public_key", "name"] } else { &["name"] };
    check_fields("keypair", &body, fields, required)?;
    let name = name_field(&body, "name", 255)?;
    let kind = if body.contains_key("type") { body.text("type") } else { "ssh" };
    if !matches!(kind, "ssh" | "x509") {
        return Err(invalid(
            "type",
            &body["type"],
            &format!("{} is not one of ['ssh', 'x509']", python(&body["type"])),
        ));
    }
    let extra = if call.minor >= 92 { "@.- _" } else { "- _" };
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c)) {
        return Err(Refusal::bad(
            "An invalid 'name' value was provided. The name must be: Only expected characters: \
             [@._- 0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ]",
        ));
    }
    let user = match body.text("user_id") {
        "" => call.caller.user.clone(),
        other => {
            admin_only(call.caller, "os-keypairs:create")?;
            other.to_owned()
        }
    };
    let own = body.text("public_key");
    let (public_key, private_key) = if own.is_empty() {
        if call.minor >= 92 {
            return Err(Refusal::bad("Keypair data is invalid: failed to generate fingerprint"));
        }
        let secret = world.hex_id();
        (
            format!("ssh-rsa {} Generated-by-Nova", world.hex_id()),
            Some(format!("-----BEGIN PRIVATE KEY-----\n{secret}\n-----END PRIVATE KEY-----\n")),
        )
    } else {
        let mut words = own.split_whitespace();
        let fits = words
            .next()
            .is_some_and(|kind| kind.starts_with("ssh-") || kind.starts_with("ecdsa-") || kind.starts_with("sk-"))
            && words
                .next()
                .is_some_and(|data| data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)));
        if !fits && kind == "ssh" {
            return Err(Refusal::bad("Keypair data is invalid: failed to generate fingerprint"));
        }
        (own.to_owned(), None)
    };
    if exists(world, &user, &name) {
        return Err(Refusal::conflict(format!("Key pair '{name}' already exists.")));
    }
    let held = world.nova.keypairs.by("user_id", &user).count();
    if world.options.quota.key_pairs.is_some_and(|limit| u64::try_from(held).unwrap_or(u64::MAX) >= limit) {
        return Err(Refusal::forbidden("Quota exceeded, too many key pairs."));
    }
    let mut row = Row::new();
    row.put("name", name.clone());
    row.put("public_key", public_key);
    row.put("fingerprint", fingerprint(world));
    row.put("type", kind);
    row.put("user_id", user.clone());
    row.put("created_at", world.micro_stamp());
    row.put("deleted", false);
    row.put("deleted_at", Value::Null);
    row.put("updated_at", Value::Null);
    row.put("id", i64::try_from(world.nova.keypairs.len()).unwrap_or_default() + 1);
    row.put("_key", key(&user, &name));
    let mut seen = public(&row);
    seen.retain(|field, _| matches!(field.as_str(), "name" | "public_key" | "fingerprint" | "type" | "user_id"));
    if call.minor < 2 {
        seen.remove("type");
    }
    if let Some(private) = private_key {
        seen.put("private_key", private);
    }
    world.nova.keypairs.insert(row);
    Ok(Reply::json(if call.minor >= 2 { 201 } else { 200 }, json!({"keypair": seen})))
}

/// A random value in the format of an MD5 fingerprint.
fn fingerprint(world: &mut CloudState) -> String {
    let bytes: [u8; 16] = world.bytes();
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}
