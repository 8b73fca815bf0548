//! How Heat encrypts values.

use aes::Aes128;
use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockDecryptMut as _, BlockEncryptMut as _, KeyIvInit as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use hmac::{Hmac, Mac as _};
use jiff::Timestamp;
use kiln_value::Secret;
use sha2::Sha256;

/// The method of all releases since Mitaka: Fernet.
pub(crate) const FERNET: &str = "cryptography_decrypt_v1";
/// Heat uses so many characters of a key: the first half signs, the second half encrypts.
const KEY_LENGTH: usize = 32;
const HALF: usize = KEY_LENGTH / 2;
/// The first byte of a Fernet token.
const VERSION: u8 = 0x80;
/// A version and a time, an initial vector, and behind the text a signature.
const HEAD: usize = 9;
const VECTOR: usize = 16;
const SIGNATURE: usize = 32;

/// Heat's `auth_encryption_key`.
pub struct HeatKey([u8; KEY_LENGTH]);

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
        text.as_bytes().first_chunk().copied().map(Self).ok_or(CipherError::TooShort)
    }

    /// The text that Heat has encrypted by `method`.
    ///
    /// # Errors
    /// [`CipherError::WrongKey`], [`CipherError::OldMethod`]
    pub fn decrypt(&self, method: &str, text: &str) -> Result<String, CipherError> {
        if method != FERNET {
            return Err(CipherError::OldMethod(method.to_owned()));
        }
        self.opened(text).and_then(|bytes| String::from_utf8(bytes).ok()).ok_or(CipherError::WrongKey)
    }

    /// The text encrypted as Heat does since Mitaka. `vector`: random; `now`: a part of the result.
    ///
    /// # Errors
    /// [`CipherError::TooShort`], which [`HeatKey::new`] has excluded.
    pub fn encrypt(&self, text: &str, vector: [u8; VECTOR], now: Timestamp) -> Result<String, CipherError> {
        let (signing, encrypting) = self.0.split_at(HALF);
        let cipher =
            cbc::Encryptor::<Aes128>::new_from_slices(encrypting, &vector).map_err(|_| CipherError::TooShort)?;
        let mut token = vec![VERSION];
        token.extend(now.as_second().to_be_bytes());
        token.extend(vector);
        token.extend(cipher.encrypt_padded_vec_mut::<Pkcs7>(text.as_bytes()));
        let mut signature = Hmac::<Sha256>::new_from_slice(signing).map_err(|_| CipherError::TooShort)?;
        signature.update(&token);
        token.extend(signature.finalize().into_bytes());
        Ok(URL_SAFE.encode(token))
    }

    /// The content of a Fernet token, if the key has signed it.
    fn opened(&self, token: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE.decode(token).ok().filter(|bytes| bytes.first() == Some(&VERSION))?;
        let (signed, signature) = bytes.split_at_checked(bytes.len().checked_sub(SIGNATURE)?)?;
        let (signing, encrypting) = self.0.split_at(HALF);
        let mut expected = Hmac::<Sha256>::new_from_slice(signing).ok()?;
        expected.update(signed);
        expected.verify_slice(signature).ok()?;
        let (vector, text) = signed.get(HEAD..)?.split_at_checked(VECTOR)?;
        let cipher = cbc::Decryptor::<Aes128>::new_from_slices(encrypting, vector).ok()?;
        cipher.decrypt_padded_vec_mut::<Pkcs7>(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str =
        "gAAAAABrC3ETI-rVjRCWIcjeJA6CeUUjYzhbZa7kSjPd6bJwxiokZ1UDMwTHNVPDCoCvYfCmTnk1oQUT3qqpcY0vdAOb48wSxA==";

    fn key(text: &str) -> HeatKey {
        HeatKey::new(&Secret::new(text.to_owned())).unwrap()
    }

    #[test]
    fn texts_that_heat_has_encrypted_are_decrypted() {
        // Made by heat.common.crypt of Heat 27 with its default key.
        let text = TOKEN;
        let public = key("notgood but just long enough i t");
        assert_eq!(public.decrypt(FERNET, text).as_deref(), Ok("\"s\u{e4}cret\""));
        for other in ["0123456789abcdef", "notgood but just long enough i T"] {
            assert_eq!(key(other).decrypt(FERNET, text), Err(CipherError::WrongKey));
        }
        // Only 32 characters matter.
        assert!(key("notgood but just long enough i t, and more").decrypt(FERNET, text).is_ok());
        assert_eq!(HeatKey::new(&Secret::new("short".to_owned())).err(), Some(CipherError::TooShort));
        for broken in ["", "gAAAA", &text[..text.len() - 4]] {
            assert_eq!(public.decrypt(FERNET, broken), Err(CipherError::WrongKey));
        }
        // No token that is shorter or has another character is opened.
        for place in 0..text.len() {
            let (before, after) = text.split_at(place);
            let other = if after.starts_with('x') { 'y' } else { 'x' };
            for broken in [before.to_owned(), format!("{before}{other}{}", &after[1..])] {
                assert_eq!(public.decrypt(FERNET, &broken), Err(CipherError::WrongKey), "{broken}");
            }
        }
        // One that the key has signed may still be no token.
        for length in 0..HEAD + 3 * VECTOR {
            let mut bytes = vec![VERSION; length];
            let mut signature = Hmac::<Sha256>::new_from_slice(&public.0[..HALF]).unwrap();
            signature.update(&bytes);
            bytes.extend(signature.finalize().into_bytes());
            assert_eq!(public.decrypt(FERNET, &URL_SAFE.encode(bytes)), Err(CipherError::WrongKey), "{length}");
        }
        let own = public.encrypt("s\u{e4}cret", [7; VECTOR], Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(public.decrypt(FERNET, &own).as_deref(), Ok("s\u{e4}cret"));
        assert_eq!(key("0123456789abcdef").decrypt(FERNET, &own), Err(CipherError::WrongKey));
        let old = public.decrypt("oslo_decrypt_v1", text).unwrap_err();
        assert!(old.to_string().contains("before Mitaka"), "{old}");
    }
}
