//! Encryption of secrets at rest: AES-256-GCM in an envelope with the ID of the key.
//!
//! An envelope is `k1:<key id>:<base64 of nonce and ciphertext>`. It is bound to the ID of its row: in another row it
//! cannot be decrypted. The key ID is a part of the hash of the key. To change the key, configure the previous one as
//! an older key; it can still decrypt.

use std::fmt;

use aes_gcm::aead::{Aead, AeadCore, KeyInit, OsRng, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kiln_value::Secret;
use sha2::{Digest as _, Sha256};

use crate::Error;
use crate::content::hex;

const FORMAT: &str = "k1";
const NONCE_BYTES: usize = 12;

/// Has no keys: for rows without secrets.
pub(super) static CLOSED: Vault = Vault { keys: Vec::new(), values: false };

/// Encrypts and decrypts secrets.
pub(super) struct Vault {
    /// The current key first.
    keys: Vec<(String, Aes256Gcm)>,
    /// Whether values are encrypted, not only secrets.
    values: bool,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|(id, _)| id)).finish()
    }
}

impl Vault {
    /// Encrypts with `key`, decrypts with any key. A key has 32 bytes, or 16 bytes that are doubled, as in Heat
    /// (docs/heat-behaviour.md §19).
    pub(super) fn new(key: &Secret<String>, older: &[Secret<String>]) -> Result<Self, Error> {
        let refused = |what: &str| Error::Unusable(format!("{what} have 32 (or 16) bytes").into());
        let mut keys = vec![cipher(key).ok_or_else(|| refused("auth_encryption_key must"))?];
        for key in older {
            keys.push(cipher(key).ok_or_else(|| refused("older_encryption_keys must each"))?);
        }
        Ok(Self { keys, values: false })
    }

    /// The IDs of the keys, that of the present one first.
    pub(super) fn key_ids(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|(id, _)| id.as_str())
    }

    /// Sets whether values are encrypted.
    pub(super) fn with_values(self, values: bool) -> Self {
        Self { values, ..self }
    }

    /// The stored form of a value for the row with this ID: encrypted if the option is set. A text that looks like an
    /// envelope is always encrypted, so that everything that looks like an envelope is one.
    pub(super) fn seal_value(&self, row: &str, text: String) -> Result<String, Error> {
        if self.values || is_envelope(&text) { self.seal(row, &text) } else { Ok(text) }
    }

    /// The reverse of [`Self::seal_value`], with any setting.
    pub(super) fn open_value(&self, row: &str, stored: String) -> Result<String, Error> {
        if is_envelope(&stored) { Ok(self.open(row, &stored)?.expose().clone()) } else { Ok(stored) }
    }

    /// The new stored form of a text that was stored with any key and setting; `None` if it does not change. `secret`:
    /// always encrypted.
    pub(super) fn reencrypt(&self, row: &str, stored: &str, secret: bool) -> Result<Option<String>, Error> {
        if self.is_current(stored) && (secret || self.values) {
            return Ok(None);
        }
        let text = self.open_value(row, stored.to_owned())?;
        let new = if secret { self.seal(row, &text)? } else { self.seal_value(row, text)? };
        Ok((new != stored).then_some(new))
    }

    /// Whether a text is encrypted with the current key.
    fn is_current(&self, text: &str) -> bool {
        let mut parts = text.splitn(3, ':');
        parts.next() == Some(FORMAT) && parts.next() == self.keys.first().map(|(id, _)| id.as_str())
    }

    /// Encrypts a text for the row with this ID.
    pub(super) fn seal(&self, row: &str, text: &str) -> Result<String, Error> {
        let Some((id, cipher)) = self.keys.first() else { return Err(Error::Unusable("no key".into())) };
        let nonce = Aes256Gcm::generate_nonce(&mut OsRng);
        let sealed = cipher
            .encrypt(&nonce, Payload { msg: text.as_bytes(), aad: row.as_bytes() })
            .map_err(|_| Error::Unusable("a secret cannot be encrypted".into()))?;
        let mut bytes = nonce.to_vec();
        bytes.extend(sealed);
        Ok(format!("{FORMAT}:{id}:{}", STANDARD.encode(bytes)))
    }

    /// Decrypts a text of the row with this ID.
    pub(super) fn open(&self, row: &str, envelope: &str) -> Result<Secret<String>, Error> {
        let damaged = |what: &str| Error::Damaged(format!("secret of {row}: {what}").into());
        let mut parts = envelope.splitn(3, ':');
        let (Some(FORMAT), Some(id), Some(body)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(damaged("unknown envelope"));
        };
        let Some((_, cipher)) = self.keys.iter().find(|(known, _)| known == id) else {
            return Err(damaged(&format!("encrypted with key {id}, which is not configured")));
        };
        let bytes = STANDARD.decode(body).map_err(|_| damaged("invalid base64"))?;
        let Some((nonce, sealed)) = bytes.split_at_checked(NONCE_BYTES) else { return Err(damaged("too short")) };
        let text = cipher
            .decrypt(Nonce::from_slice(nonce), Payload { msg: sealed, aad: row.as_bytes() })
            .map_err(|_| damaged("cannot be decrypted"))?;
        String::from_utf8(text).map(Secret::new).map_err(|_| damaged("invalid UTF-8"))
    }
}

/// Whether a stored text is an envelope. JSON never starts like one.
fn is_envelope(text: &str) -> bool {
    text.strip_prefix(FORMAT).is_some_and(|rest| rest.starts_with(':'))
}

/// `None`: the key has another length.
fn cipher(key: &Secret<String>) -> Option<(String, Aes256Gcm)> {
    let bytes = match key.expose().len() {
        16 => key.expose().repeat(2).into_bytes(),
        _ => key.expose().clone().into_bytes(),
    };
    let cipher = Aes256Gcm::new_from_slice(&bytes).ok()?;
    let hash = Sha256::new().chain_update("kiln key id").chain_update(&bytes).finalize();
    let id = hash.get(..4).map(hex).unwrap_or_default();
    Some((id, cipher))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Secret<String> {
        Secret::new(text.to_owned())
    }

    #[test]
    fn seals_for_one_row_only() {
        let vault = Vault::new(&key("0123456789abcdef0123456789abcdef"), &[]).unwrap();
        let envelope = vault.seal("row", "pässwörd").unwrap();
        assert!(!envelope.contains("pässwörd"));
        assert_eq!(vault.open("row", &envelope).unwrap().expose(), "pässwörd");
        assert!(vault.open("other", &envelope).is_err());
        assert!(vault.open("row", &envelope[..envelope.len() - 8]).is_err());
        assert_ne!(vault.seal("row", "pässwörd").unwrap(), envelope);
    }

    #[test]
    fn sixteen_bytes_are_doubled_and_others_refused() {
        let short = Vault::new(&key("0123456789abcdef"), &[]).unwrap();
        let long = Vault::new(&key("0123456789abcdef0123456789abcdef"), &[]).unwrap();
        assert_eq!(long.open("r", &short.seal("r", "x").unwrap()).unwrap().expose(), "x");
        let refused = |own: &str, older: &str| Vault::new(&key(own), &[key(older)]).unwrap_err().to_string();
        assert!(refused("short", "0123456789abcdef").contains("auth_encryption_key must have 32 (or 16) bytes"));
        assert!(refused("0123456789abcdef", "short").contains("older_encryption_keys must each have 32"));
    }

    #[test]
    fn older_keys_still_open() {
        let (old, new) = (key("a123456789abcdef"), key("b123456789abcdef"));
        let envelope = Vault::new(&old, &[]).unwrap().seal("r", "x").unwrap();
        assert!(Vault::new(&new, &[]).unwrap().open("r", &envelope).is_err());
        assert_eq!(Vault::new(&new, &[old]).unwrap().open("r", &envelope).unwrap().expose(), "x");
    }
}
