//! What an operator has to know before a take-over.

use std::fmt;

/// What a finding means for the take-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// The stack cannot be taken over.
    Blocks,
    /// It can, and something is different afterwards.
    Notice,
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blocks => "blocks",
            Self::Notice => "notice",
        })
    }
}

/// A fact about a stack of Heat, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it means.
    pub grade: Grade,
    /// Where: names of nested stacks and resources below the root stack, joined with slashes; empty for the root stack.
    pub place: String,
    /// What was found.
    pub what: String,
    /// What to do.
    pub hint: String,
}

impl Finding {
    /// A finding that blocks the take-over.
    pub fn blocks(place: impl Into<String>, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { grade: Grade::Blocks, place: place.into(), what: what.into(), hint: hint.into() }
    }

    /// A finding that blocks nothing.
    pub fn notice(place: impl Into<String>, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { grade: Grade::Notice, ..Self::blocks(place, what, hint) }
    }
}

/// Whether one of the findings blocks the stack.
pub(crate) fn is_blocked(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.grade == Grade::Blocks)
}

/// What blocks the stack, in one line; empty: nothing.
pub fn reasons(findings: &[Finding]) -> String {
    let reasons = findings.iter().filter(|finding| finding.grade == Grade::Blocks).map(ToString::to_string);
    reasons.collect::<Vec<_>>().join("; ")
}

/// The place of a resource in a stack with this place.
pub(crate) fn below(place: &str, resource: &str) -> String {
    if place.is_empty() { resource.to_owned() } else { format!("{place}/{resource}") }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.what)
    }
}
