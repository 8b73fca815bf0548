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

    /// The digest of a text that is followed by a value as JSON, which is nowhere in memory as a whole.
    ///
    /// # Errors
    /// A value that cannot be written as JSON.
    pub fn of_json(text: &str, value: &impl Serialize) -> Result<Self, serde_json::Error> {
        use sha2::Digest as _;
        let mut writer = Hashing(sha2::Sha256::new_with_prefix(text));
        serde_json::to_writer(&mut writer, value)?;
        Ok(Self(hex(&writer.0.finalize())))
    }
}

/// What is written to it is a part of the digest.
struct Hashing(sha2::Sha256);

impl std::io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        use sha2::Digest as _;
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
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
