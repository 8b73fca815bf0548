//! Rings of the doorbell, for databases without notifications.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // `origin` is the process that rang. Rows are kept for a minute; the newest one is kept so that numbers only
    // increase.
    All("CREATE TABLE IF NOT EXISTS kiln_ring (
        number {serial},
        stack {id} NOT NULL,
        origin {id} NOT NULL,
        rung {int} NOT NULL
    ) {table}"),
];
