//! The order of the events of a stack.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // `commits` counts transactions with events of the stack, so that two of them always conflict.
    All("CREATE TABLE IF NOT EXISTS kiln_event_order (
        stack {id} NOT NULL PRIMARY KEY,
        commits {int} NOT NULL
    ) {table}"),
];
