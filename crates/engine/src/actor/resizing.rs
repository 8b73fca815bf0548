//! Changes of the size of groups, as the message bus is told about them.

use jiff::Timestamp;
use kiln_resource::MessageId;
use kiln_store::{Announcement, GroupResize};
use kiln_value::{Value, value};

use super::Work;

/// A change of size, for the message bus.
pub(super) struct Resizing<'a> {
    /// The reference ID of the group.
    pub(super) group: &'a str,
    pub(super) adjustment: &'a Value,
    pub(super) capacity: usize,
}

impl Resizing<'_> {
    /// `of`: the message that caused or ends it.
    pub(super) fn announcement(&self, suffix: &str, of: MessageId, time: Timestamp, message: String) -> Announcement {
        let details = value!({
            "adjustment_type": (self.adjustment.str_at("kind").map(capitalized)),
            "adjustment": (self.adjustment.get("by").cloned()),
            "capacity": (self.capacity),
            "groupname": (self.group),
            "message": message,
        });
        Announcement {
            id: uuid::Uuid::new_v5(&of.0, suffix.as_bytes()),
            event_type: format!("autoscaling.{suffix}"),
            error: suffix == "error",
            time,
            details: details.as_map().cloned().unwrap_or_default(),
        }
    }
}

/// Heat tells the words of CFN: `ChangeInCapacity` for `change_in_capacity`.
fn capitalized(words: &str) -> String {
    let capitalize = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
    };
    words.split('_').map(capitalize).collect()
}

impl Work {
    /// Announces the end of a change of size on the message bus.
    pub(super) fn announce_end(
        &mut self,
        message: MessageId,
        resize: &GroupResize,
        failed: Option<String>,
        size: Option<usize>,
    ) {
        let Some(group) = &resize.group else { return };
        let capacity = if failed.is_some() { size.unwrap_or_default() } else { resize.size };
        let suffix = if failed.is_some() { "error" } else { "end" };
        let text = failed.unwrap_or_else(|| format!("End resizing the group {group}"));
        let end = Resizing { group, adjustment: &resize.adjustment, capacity };
        let now = self.actor.backends.clock.now();
        self.writes.announce(end.announcement(suffix, message, now, text));
    }
}
