//! How long operations of resources took.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // The number of operations of a type whose duration is in a bucket (`duration.rs`).
    All("CREATE TABLE IF NOT EXISTS kiln_duration (
        resource_type {name} NOT NULL,
        action {word} NOT NULL,
        bucket {int} NOT NULL,
        number {int} NOT NULL
    ) {table}"),
    All("CREATE UNIQUE INDEX kiln_duration_of ON kiln_duration (resource_type, action, bucket)"),
];
