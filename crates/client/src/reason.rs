//! What the reasons of Heat's events say. Its API has no fields for it, so that these are the only sentences that a client
//! reads.

use crate::view::Event;

/// What an event says about a hook of its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookNews<'a> {
    /// The resource waits until this hook is cleared.
    Reached(&'a str),
    /// This hook was cleared.
    Cleared(&'a str),
    /// The resource waits no more, because the operation has failed.
    Left,
}

impl Event {
    /// What it says about a hook.
    pub fn hook(&self) -> Option<HookNews<'_>> {
        let reason = self.reason();
        if reason == "Failure occurred while waiting." {
            return Some(HookNews::Left);
        }
        let reason = reason.strip_suffix(" is cleared")?;
        let reached = reason.split_once(" paused until Hook ").map(|(_, hook)| HookNews::Reached(hook));
        reached.or_else(|| reason.strip_prefix("Hook ").map(HookNews::Cleared))
    }
}

/// Whether the old object is not updated but replaced: a create follows.
pub fn announces_replacement(status: &str, reason: &str) -> bool {
    status == "UPDATE_COMPLETE" && reason.ends_with(" requires replacement.")
}

/// The name that a resource had before, if it has got another one. Only Kiln has such events.
pub fn moved_from(reason: &str) -> Option<&str> {
    reason.strip_prefix("moved from ")
}

/// Whether a failure is the consequence of another one. An operation whose time has run out says what it was waiting for.
pub fn was_stopped(reason: &str) -> bool {
    (reason.contains(" aborted") && !reason.contains("; it was waiting for ")) || reason.contains("cancelled")
}
