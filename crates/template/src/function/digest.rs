//! `digest`.

use std::fmt::Write as _;

use kiln_value::{Class, Diagnostic, Value};
use sha2::Digest as _;

use super::{Function, fault};
use crate::expr::{Call, Context};

/// The hexadecimal digest of a Latin-1 string.
#[derive(Debug)]
pub(crate) struct Digest;

/// The algorithms, by their names in Python's `hashlib`.
const ALGORITHMS: [&str; 14] = [
    "blake2b",
    "blake2s",
    "md5",
    "sha1",
    "sha224",
    "sha256",
    "sha384",
    "sha3_224",
    "sha3_256",
    "sha3_384",
    "sha3_512",
    "sha512",
    "sha512_224",
    "sha512_256",
];

/// Algorithms with digests of variable length: known, but not usable here.
const OF_ANY_LENGTH: [&str; 2] = ["shake_128", "shake_256"];

impl Function for Digest {
    fn resolve(&self, call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        let name = call.name;
        let args = call.resolved_args(context)?;
        let texts: Option<Vec<&str>> = args.as_list().and_then(|args| args.iter().map(Value::as_str).collect());
        let Some(texts) = texts else {
            return Err(fault::type_error(format!("Argument to function \"{name}\" must be a list of strings")));
        };
        let &[algorithm, text] = texts.as_slice() else {
            return Err(fault::value_error(format!("Function \"{name}\" usage: [\"<algorithm>\", \"<value>\"]")));
        };
        let algorithm = algorithm.to_lowercase();
        if OF_ANY_LENGTH.contains(&&*algorithm) {
            return Err(fault::type_error("hexdigest() missing required argument 'length' (pos 1)"));
        }
        if !ALGORITHMS.contains(&&*algorithm) {
            return Err(fault::value_error(format!("Algorithm must be one of {}", ALGORITHMS.join(", "))));
        }
        Ok(digest(&algorithm, &latin_1(text)?).map(Value::Str))
    }
}

fn latin_1(text: &str) -> Result<Vec<u8>, Diagnostic> {
    let byte = |(position, c): (usize, char)| {
        u8::try_from(c).map_err(|_| {
            let code = u32::from(c);
            let shown = if code > 0xffff { format!("\\U{code:08x}") } else { format!("\\u{code:04x}") };
            let message = format!(
                "'latin-1' codec can't encode character '{shown}' in position {position}: ordinal not in range(256)"
            );
            Diagnostic::new(Class::UnicodeEncodeError, message)
        })
    };
    text.chars().enumerate().map(byte).collect()
}

/// The digest; `None` if the algorithm is not one of [`ALGORITHMS`].
fn digest(algorithm: &str, bytes: &[u8]) -> Option<String> {
    Some(match algorithm {
        "blake2b" => hex(&blake2::Blake2b512::digest(bytes)),
        "blake2s" => hex(&blake2::Blake2s256::digest(bytes)),
        "md5" => hex(&md5::Md5::digest(bytes)),
        "sha1" => hex(&sha1::Sha1::digest(bytes)),
        "sha224" => hex(&sha2::Sha224::digest(bytes)),
        "sha256" => hex(&sha2::Sha256::digest(bytes)),
        "sha384" => hex(&sha2::Sha384::digest(bytes)),
        "sha512" => hex(&sha2::Sha512::digest(bytes)),
        "sha512_224" => hex(&sha2::Sha512_224::digest(bytes)),
        "sha512_256" => hex(&sha2::Sha512_256::digest(bytes)),
        "sha3_224" => hex(&sha3::Sha3_224::digest(bytes)),
        "sha3_256" => hex(&sha3::Sha3_256::digest(bytes)),
        "sha3_384" => hex(&sha3::Sha3_384::digest(bytes)),
        "sha3_512" => hex(&sha3::Sha3_512::digest(bytes)),
        _ => return None,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
