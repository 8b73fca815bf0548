//! Times in responses.

use jiff::Timestamp;

/// `2026-11-20T06:52:45Z`: whole seconds.
pub(crate) fn instant(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
