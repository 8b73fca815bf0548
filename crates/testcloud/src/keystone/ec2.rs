//! EC2 keys, and tokens for the requests that they sign.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::roles::{Target, effective};
use super::signature::{SignedCall, signature_2, signature_4};
use super::tokens::{Caller, Scope, body, live, store};
use super::{denied, member, not_found, page};
use crate::reply::{Outcome, Refusal, Reply};
use crate::request::ServiceCall;
use crate::state::CloudState;
use crate::table::{Fields, Row};

/// How long a signature with a time is valid: `[credential] auth_ttl` of Keystone.
const LIFE: SignedDuration = SignedDuration::from_mins(15);

/// `/users/{user}/credentials/OS-EC2`.
pub(super) fn route(
    world: &mut CloudState,
    request: &ServiceCall,
    caller: &Caller,
    user: &str,
    rest: &[&str],
) -> Outcome {
    if caller.user != user && !caller.admin {
        return Err(denied("ec2_credential"));
    }
    let of_user = |row: &&Row| row.text("user_id") == user;
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            let rows: Vec<Row> = world.keystone.ec2.by("user_id", user).cloned().collect();
            Ok(Reply::ok(page(world, request, "credentials", &rows)))
        }
        ("POST", []) => {
            let body = request.json("The body is not valid JSON.")?;
            let project = body.get("tenant_id").and_then(Value::as_str).unwrap_or_default().to_owned();
            world.keystone.projects.get(&project).ok_or_else(|| not_found("project", &project))?;
            let (access, secret) = (world.hex_id(), world.hex_id());
            let mut row = Row::new();
            row.put("access", access);
            row.put("secret", secret);
            row.put("user_id", user);
            row.put("tenant_id", project);
            row.put("trust_id", caller.trust.clone());
            world.keystone.ec2.insert(row.clone());
            Ok(Reply::created(json!({ "credential": row })))
        }
        ("GET", [access]) => {
            let row = world.keystone.ec2.get(access).filter(of_user);
            let row = row.ok_or_else(|| not_found("credential", access))?;
            Ok(Reply::ok(json!({ "credential": row })))
        }
        ("DELETE", [access]) => {
            world.keystone.ec2.get(access).filter(of_user).ok_or_else(|| not_found("credential", access))?;
            world.keystone.ec2.remove(access);
            Ok(Reply::empty(204))
        }
        _ => Err(Refusal::no_route()),
    }
}

/// `POST /ec2tokens`: checks a signature and issues a token for the owner of the key.
pub(super) fn token(world: &mut CloudState, request: &ServiceCall) -> Outcome {
    let given = member(request, "ec2Credentials")?;
    let key = world.keystone.ec2.get(given.text("access")).cloned();
    // Keystone does not say what is wrong.
    let key = key.ok_or_else(Refusal::unauthorized)?;
    if !is_signed(&given, key.text("secret")) || !is_recent(&given, world.now()) {
        return Err(Refusal::unauthorized());
    }
    let (user, project) = (key.text("user_id").to_owned(), key.text("tenant_id").to_owned());
    let scope = match key.text("trust_id") {
        "" => {
            let target = Target::Project(project);
            if effective(world, &user, &target).is_empty() {
                return Err(Refusal::unauthorized());
            }
            Scope::On(target)
        }
        trust => Scope::Trust(trust.to_owned()),
    };
    let id = store(world, user, scope, vec!["ec2credential".to_owned()], None, None);
    let token = live(world, &id).ok_or_else(Refusal::unauthorized)?;
    let reply = body(world, token, true)?;
    Ok(Reply::ok(reply).header("x-subject-token", id).header("vary", "X-Auth-Token"))
}

/// Whether the signature has no time, or one of the last minutes.
fn is_recent(given: &Row, now: Timestamp) -> bool {
    let entry = |field: &str, name: &str| given.get(field)?.get(name)?.as_str();
    let time = entry("params", "Timestamp").or_else(|| entry("headers", "X-Amz-Date"));
    let Some(time) = time.or_else(|| entry("params", "X-Amz-Date")) else { return true };
    // With and without separators.
    let digits = time.replace(['-', ':'], "");
    let time = DateTime::strptime("%Y%m%dT%H%M%S", digits.trim_end_matches('Z'));
    let time = time.and_then(|time| time.to_zoned(TimeZone::UTC));
    time.is_ok_and(|time| now.duration_since(time.timestamp()) <= LIFE)
}

/// Whether the signature belongs to the request, also for clients that sign the host without its port.
fn is_signed(given: &Row, secret: &str) -> bool {
    let map = |field: &str| -> BTreeMap<String, String> {
        let entries = given.get(field).and_then(Value::as_object).into_iter().flatten();
        entries.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
    };
    let (params, headers) = (map("params"), map("headers"));
    let host = given.text("host");
    let hosts = [host, host.split(':').next().unwrap_or_default()];
    hosts.into_iter().any(|host| {
        let call = SignedCall {
            verb: given.text("verb"),
            host,
            path: given.text("path"),
            params: &params,
            headers: &headers,
            body_hash: given.text("body_hash"),
        };
        let signature = match params.get("SignatureVersion").map(String::as_str) {
            Some("2") => Some(signature_2(&call, secret)),
            Some(_) => None,
            None => signature_4(&call, secret),
        };
        signature.is_some_and(|signature| signature == given.text("signature"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_with_a_time_expire() {
        let now: Timestamp = "2026-01-01T00:15:00Z".parse().unwrap();
        for (params, headers, recent) in [
            (json!({}), json!({}), true),
            (json!({ "Timestamp": "2026-01-01T00:00:00Z" }), json!({}), true),
            (json!({ "Timestamp": "2026-01-01T00:00:00" }), json!({}), true),
            (json!({ "Timestamp": "2025-12-31T23:59:59Z" }), json!({}), false),
            (json!({ "Timestamp": "yesterday" }), json!({}), false),
            (json!({ "X-Amz-Date": "20251231T235959Z" }), json!({}), false),
            (json!({ "X-Amz-Date": "20251231T235959Z" }), json!({ "X-Amz-Date": "20260101T000000Z" }), true),
        ] {
            let mut given = Row::new();
            given.put("params", params.clone());
            given.put("headers", headers);
            assert_eq!(is_recent(&given, now), recent, "{params}");
        }
    }
}
