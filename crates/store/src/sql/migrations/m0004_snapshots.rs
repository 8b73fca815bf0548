//! Snapshots, and the parameters of requests.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // JSON; NULL if the request has no parameters.
    All("ALTER TABLE kiln_stack ADD COLUMN details {text} NULL"),
    All("CREATE TABLE IF NOT EXISTS kiln_snapshot (
        id {id} NOT NULL PRIMARY KEY,
        stack {id} NOT NULL,
        name {text} NULL,
        action {word} NOT NULL,
        status {word} NOT NULL,
        reason {text} NOT NULL,
        data {text} NULL,
        created {int} NOT NULL
    ) {table}"),
    All("CREATE INDEX kiln_snapshot_stack ON kiln_snapshot (stack, created)"),
];
