//! Signatures of Standard Webhooks: HMAC-SHA256 of the ID, the time and the body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use jiff::Timestamp;
use kiln_value::Secret;
use sha2::Sha256;
use uuid::Uuid;

/// What a key begins with.
const KEY: &str = "whsec_";

/// The value of `webhook-signature`: one signature for each key that can be read.
pub(crate) fn signatures(keys: &[&Secret<String>], id: Uuid, time: Timestamp, body: &str) -> String {
    let text = format!("{id}.{}.{body}", time.as_second());
    let signatures: Vec<String> = keys.iter().filter_map(|key| signature(key, &text)).collect();
    signatures.join(" ")
}

fn signature(key: &Secret<String>, text: &str) -> Option<String> {
    let key = STANDARD.decode(key.expose().strip_prefix(KEY)?).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(text.as_bytes());
    Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the library of Standard Webhooks for Python signs it.
    #[test]
    fn signs_as_standard_webhooks_says() {
        let key = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLASw".to_owned());
        let text = r#"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}"#;
        assert_eq!(signature(&key, text).as_deref(), Some("v1,hn6gPDuvthHWWsZDuMjgwyc63ajzh5ywzvy1quoqxtk="));
    }

    #[test]
    fn two_keys_give_two_signatures() {
        let keys = ["whsec_AAAA", "whsec_BBBB", "no key"].map(|key| Secret::new(key.to_owned()));
        let signed = signatures(&keys.iter().collect::<Vec<_>>(), Uuid::nil(), Timestamp::UNIX_EPOCH, "{}");
        let parts: Vec<&str> = signed.split(' ').collect();
        assert!(parts.len() == 2 && parts[0] != parts[1] && parts.iter().all(|one| one.starts_with("v1,")), "{signed}");
    }
}
