//! One-time passwords (RFC 6238, as Keystone has them: SHA-1, 6 digits, 30 seconds), and the methods that a user must combine.

use data_encoding::BASE32;
use hmac::{Hmac, Mac as _};
use serde_json::{Value, json};
use sha1::Sha1;

use crate::reply::{Refusal, Reply};
use crate::state::CloudState;
use crate::table::{Fields, Row};

/// A passcode is good for this time, in seconds.
const STEP: u64 = 30;

/// The passcode of a secret (BASE32) at a time (seconds since 1970); `None` if the secret is no BASE32.
pub fn passcode(secret: &str, seconds: u64) -> Option<String> {
    let mut hmac = Hmac::<Sha1>::new_from_slice(&BASE32.decode(secret.as_bytes()).ok()?).ok()?;
    hmac.update(&(seconds / STEP).to_be_bytes());
    let digest = hmac.finalize().into_bytes();
    let at = usize::from(digest.last()? & 0x0f);
    let word = u32::from_be_bytes(digest.get(at..at + 4)?.try_into().ok()?) & 0x7fff_ffff;
    Some(format!("{:06}", word % 1_000_000))
}

/// Whether a passcode is that of this step or of the one before, which Keystone accepts too.
pub(super) fn is_passcode(world: &CloudState, secret: &str, given: &str) -> bool {
    let now = u64::try_from(world.now().as_second()).unwrap_or_default();
    [now, now.saturating_sub(STEP)].iter().any(|at| passcode(secret, *at).as_deref() == Some(given))
}

/// The answer to a user whose rules ask for more methods; `None`: these are enough.
pub(super) fn more_methods(world: &mut CloudState, user: &str, methods: &[String]) -> Result<Option<Reply>, Refusal> {
    let row = world.keystone.users.get(user).cloned().ok_or_else(Refusal::unauthorized)?;
    let options = row.get("options").and_then(Value::as_object).cloned().unwrap_or_default();
    let rules = options.get("multi_factor_auth_rules").and_then(Value::as_array).cloned().unwrap_or_default();
    let has = |method: &Value| method.as_str().is_some_and(|method| methods.iter().any(|one| one == method));
    let is_met = |rule: &Value| rule.as_array().is_some_and(|rule| rule.iter().all(has));
    if !options.get("multi_factor_auth_enabled").is_some_and(|on| on == true)
        || rules.is_empty()
        || rules.iter().any(is_met)
    {
        return Ok(None);
    }
    let user = json!({"id": user, "name": row.text("name"), "domain": {"id": row.text("domain_id")}});
    let body = json!({"receipt": {"methods": methods, "user": user}, "required_auth_methods": rules});
    let receipt = world.hex_id();
    Ok(Some(Reply::json(401, body).header("openstack-auth-receipt", receipt)))
}

/// Stores the secret of a user.
pub(super) fn store(world: &mut CloudState, user: &str, blob: &str) -> Result<Row, Refusal> {
    passcode(blob, 0).ok_or_else(|| Refusal::bad("Invalid blob in credential"))?;
    let mut seen = Row::new();
    seen.put("id", world.hex_id());
    seen.put("type", "totp");
    seen.put("user_id", user);
    seen.put("project_id", Value::Null);
    seen.put("blob", blob);
    world.keystone.users.edit(user, |row| row.put("_totp", blob));
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of RFC 6238, appendix B, with 6 of its 8 digits.
    #[test]
    fn the_vectors_of_the_rfc() {
        let secret = BASE32.encode(b"12345678901234567890");
        for (seconds, expected) in [(59, "287082"), (1_111_111_109, "081804"), (20_000_000_000, "353130")] {
            assert_eq!(passcode(&secret, seconds).as_deref(), Some(expected));
        }
        assert_eq!(passcode("no base32", 0), None);
    }
}
