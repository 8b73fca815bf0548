//! Encrypts what a browser keeps for the server.

use aes_gcm::aead::{Aead as _, AeadCore as _, KeyInit as _, OsRng, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kiln_value::Secret;
use sha2::{Digest as _, Sha256};

/// What is sealed; another format gets another name.
const PURPOSE: &[u8] = b"kiln dashboard session 1";
const NONCE_BYTES: usize = 12;

/// A key of AES-256-GCM, derived from the secret of the service.
pub(crate) struct Seal(Aes256Gcm);

impl Seal {
    pub(crate) fn new(secret: &Secret<String>) -> Self {
        let key = Sha256::new().chain_update(PURPOSE).chain_update([0]).chain_update(secret.expose()).finalize();
        Self(Aes256Gcm::new(&key))
    }

    /// A text for a cookie; `None` if it cannot be encrypted.
    pub(crate) fn seal(&self, text: &[u8]) -> Option<String> {
        let nonce = Aes256Gcm::generate_nonce(&mut OsRng);
        let sealed = self.0.encrypt(&nonce, Payload { msg: text, aad: PURPOSE }).ok()?;
        Some(URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat()))
    }

    /// The reverse; `None` for a text that this key has not sealed.
    pub(crate) fn open(&self, sealed: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_BYTES)?;
        self.0.decrypt(Nonce::from_slice(nonce), Payload { msg: sealed, aad: PURPOSE }).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_secret_opens_it_and_only_unchanged() {
        let of = |secret: &str| Seal::new(&Secret::new(secret.to_owned()));
        let sealed = of("a").seal(b"token").unwrap();
        assert_eq!(of("a").open(&sealed).as_deref(), Some(&b"token"[..]));
        assert_eq!(of("b").open(&sealed), None);
        assert_ne!(of("a").seal(b"token").unwrap(), sealed);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(of("a").open(std::str::from_utf8(&changed).unwrap()), None);
        }
        assert_eq!(of("a").open(""), None);
    }
}
