//! Texts that are stored once by hash: templates, environments, files.

use std::fmt;

use serde::{Deserialize, Serialize};

/// SHA-256 of a text, in hex.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub String);

impl Digest {
    /// The digest of a text.
    pub fn of(text: &str) -> Self {
        use sha2::Digest as _;
        Self(hex(&sha2::Sha256::digest(text)))
    }
}

/// Bytes as lower case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |text, byte| text + &format!("{byte:02x}"))
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How an environment with event sinks is written.
const SINKS: &str = "\"event_sinks\":[{";

/// The desired state of a stack, as digests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Desired {
    /// The template.
    pub template: Digest,
    /// The merged environment with the parameters.
    pub environment: Digest,
    /// The files.
    pub files: Digest,
    /// Whether the environment may have event sinks. If not, events are stored without reading the environment.
    pub sinks: bool,
}

/// The desired state of a stack, as texts (JSON) that are stored by digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredText {
    /// The template.
    pub template: String,
    /// The merged environment with the parameters.
    pub environment: String,
    /// The files: a map of names to texts.
    pub files: String,
}

impl DesiredText {
    /// The digests of the texts.
    pub fn digests(&self) -> Desired {
        Desired {
            template: Digest::of(&self.template),
            environment: Digest::of(&self.environment),
            files: Digest::of(&self.files),
            sinks: self.environment.contains(SINKS),
        }
    }
}
