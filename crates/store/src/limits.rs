//! How long things are kept, and how much goes at once: the same for every store.

use std::time::Duration;

/// A text that was named so long ago gets a new time when it is named again …
pub(crate) const CONTENT_FRESH: Duration = Duration::from_mins(30);
/// … so that one that was not named for so long, and is named by no stack, may go: no transaction that has just seen
/// it lasts half an hour.
pub(crate) const CONTENT_KEPT: Duration = Duration::from_hours(1);
/// For how long a handled message is known: far longer than any send is repeated.
pub(crate) const HANDLED_KEPT: Duration = Duration::from_hours(1);
/// An engine is forgotten after so many intervals without a report.
pub(crate) const SILENT_INTERVALS: u32 = 60;

/// Stacks that one call forgets.
pub(crate) const STACKS: usize = 50;
/// Events of one stack, or handled messages, that one call forgets.
pub(crate) const EVENTS: usize = 5_000;
/// Texts that one call forgets.
pub(crate) const CONTENTS: usize = 200;
/// The most leases that one call claims.
pub(crate) const CLAIMS: usize = 1_000;
