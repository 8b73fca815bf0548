//! The outcome of a call of a plug-in's method.

use kiln_resource::{Failure, FailureKind};
use kiln_value::{Class, Secret, Value};

/// Error class of failures that a plug-in does not report itself.
pub(crate) const CLASS: Class = Class::PluginError;

/// Longest part of a text of a plug-in in a message, in characters.
const QUOTED: usize = 200;

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallError {
    /// The request was not sent.
    NotSent(String),
    /// It may have been executed, and it is the reason why there is no result.
    Broken(String),
    /// It may have been executed. The process ended, and several calls were in progress.
    Interrupted(String),
    /// The plug-in reported an error: `{"code", "message", "data"}`.
    Reported(Value),
}

impl CallError {
    /// The failure of a resource. `plugin` and `method` are named in it, except in errors that the plug-in reports.
    pub(crate) fn failure(self, plugin: &str, method: &str) -> Failure {
        let (kind, why) = match self {
            Self::NotSent(why) => (FailureKind::NotSent, why),
            Self::Broken(why) => (FailureKind::BrokenOff, why),
            Self::Interrupted(why) => (FailureKind::Unavailable, why),
            Self::Reported(error) => return crate::answer::failure(plugin, method, &error),
        };
        Failure::new(kind, CLASS, format!("Plug-in {plugin}, method {method}: {why}"))
    }
}

/// A text of a plug-in for a message: without the secret, control characters, and what is too long.
pub(crate) fn quoted(text: &str, secrets: &[Secret<String>]) -> String {
    let clean: String = masked(text, secrets).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let clean = clean.trim();
    match clean.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", clean.get(..end).unwrap_or_default()),
        None => clean.to_owned(),
    }
}

/// A text without secrets.
pub(crate) fn masked(text: &str, secrets: &[Secret<String>]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().map(Secret::expose).filter(|secret| !secret.is_empty()) {
        if text.contains(secret.as_str()) {
            text = text.replace(secret.as_str(), "******");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_plugins_are_short_and_without_secrets() {
        let secret = Secret::new("gAAAA".to_owned());
        assert_eq!(quoted("\u{1b}a token=gAAAA\nb ", &[secret]), "a token=****** b");
        assert_eq!(quoted(&"é".repeat(300), &[]).chars().count(), QUOTED + 1);
    }
}
