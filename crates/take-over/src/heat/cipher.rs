//! How Heat encrypts values.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use kiln_value::Secret;

/// The method of all releases since Mitaka.
const FERNET: &str = "cryptography_decrypt_v1";
/// Heat uses so many characters of a key.
const KEY_LENGTH: usize = 32;

/// Heat's `auth_encryption_key`.
pub struct HeatKey(fernet::Fernet);

/// Why a value cannot be decrypted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CipherError {
    /// Heat itself could not use the key.
    #[error("it has less than 16 characters")]
    TooShort,
    /// The value was encrypted with another key, or it is damaged.
    #[error("the key does not decrypt it")]
    WrongKey,
    /// A method that no supported release writes.
    #[error(
        "it is encrypted by {0:?}, as Heat did before Mitaka; run 'heat-manage update_params decrypt' and 'heat-manage \
         update_params encrypt' in Heat first"
    )]
    OldMethod(String),
}

impl HeatKey {
    /// The key that Heat makes of the text of its option: a short one is doubled, a long one is cut.
    ///
    /// # Errors
    /// [`CipherError::TooShort`]
    pub fn new(key: &Secret<String>) -> Result<Self, CipherError> {
        let key = key.expose();
        let text = if key.len() < KEY_LENGTH { key.repeat(2) } else { key.clone() };
        let bytes = text.as_bytes();
        let bytes = bytes.get(..KEY_LENGTH).unwrap_or(bytes);
        fernet::Fernet::new(&URL_SAFE.encode(bytes)).map(Self).ok_or(CipherError::TooShort)
    }

    /// The text that Heat has encrypted by `method`.
    ///
    /// # Errors
    /// [`CipherError::WrongKey`], [`CipherError::OldMethod`]
    pub fn decrypt(&self, method: &str, text: &str) -> Result<String, CipherError> {
        if method != FERNET {
            return Err(CipherError::OldMethod(method.to_owned()));
        }
        let bytes = self.0.decrypt(text).map_err(|_| CipherError::WrongKey)?;
        String::from_utf8(bytes).map_err(|_| CipherError::WrongKey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> HeatKey {
        HeatKey::new(&Secret::new(text.to_owned())).unwrap()
    }

    #[test]
    fn texts_that_heat_has_encrypted_are_decrypted() {
        let public = key("notgood but just long enough i t");
        let own = fernet::Fernet::new(&URL_SAFE.encode("notgood but just long enough i t")).unwrap();
        let text = own.encrypt("\"s\u{e4}cret\"".as_bytes());
        assert_eq!(public.decrypt(FERNET, &text).as_deref(), Ok("\"s\u{e4}cret\""));
        for other in ["0123456789abcdef", "notgood but just long enough i T"] {
            assert_eq!(key(other).decrypt(FERNET, &text), Err(CipherError::WrongKey));
        }
        // Only 32 characters matter.
        assert!(key("notgood but just long enough i t, and more").decrypt(FERNET, &text).is_ok());
        assert_eq!(HeatKey::new(&Secret::new("short".to_owned())).err(), Some(CipherError::TooShort));
        for broken in ["", "gAAAA", &text[..text.len() - 4]] {
            assert_eq!(public.decrypt(FERNET, broken), Err(CipherError::WrongKey));
        }
        let old = public.decrypt("oslo_decrypt_v1", &text).unwrap_err();
        assert!(old.to_string().contains("before Mitaka"), "{old}");
    }
}
