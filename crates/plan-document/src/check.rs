//! What the pre-flight of a plan has found.

use serde::{Deserialize, Serialize};

/// What a check has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing.
    Passed,
    /// It could not be made.
    Skipped,
    /// The change may fail.
    Warn,
    /// The change would fail.
    Fail,
}

impl Verdict {
    /// Its word in texts.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "PASSED",
            Self::Skipped => "SKIPPED",
            Self::Warn => "WARN",
            Self::Fail => "FAIL",
        }
    }
}

/// A result of a check: one for each thing that it has found, or one that says that it has passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The check: `quotas`, `names` and so on.
    pub check: String,
    /// What it has found.
    pub verdict: Verdict,
    /// In words; empty if it has passed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The paths of the resources that it is about, as far as it is about some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
}

impl Check {
    /// A check that could not be made, and why.
    pub fn skipped(check: &str, message: String) -> Self {
        Self { check: check.to_owned(), verdict: Verdict::Skipped, message, resources: Vec::new() }
    }

    /// What a user reads: `quotas: compute allows 10 instances …`.
    pub fn text(&self) -> String {
        if self.message.is_empty() { self.check.clone() } else { format!("{}: {}", self.check, self.message) }
    }
}
