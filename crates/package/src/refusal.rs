//! Errors in packages.

use std::fmt;

/// Why a package is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A stable word, such as `unsafe-path`.
    pub kind: &'static str,
    /// The member; `None` for the archive itself.
    pub member: Option<String>,
    /// The complete text.
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(kind: &'static str, member: Option<&str>, message: impl Into<String>) -> Self {
        Self { kind, member: member.map(str::to_owned), message: message.into() }
    }
}

pub(crate) fn unsafe_path(name: &str) -> Refusal {
    Refusal::new("unsafe-path", Some(name), format!("{name} leaves the package."))
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
