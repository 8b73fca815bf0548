//! Orphans.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    All("CREATE TABLE IF NOT EXISTS kiln_orphan (
        id {id} NOT NULL PRIMARY KEY,
        project {name} NOT NULL,
        stack {id} NOT NULL,
        stack_name {name} NOT NULL,
        path {text} NOT NULL,
        type {text} NOT NULL,
        physical_id {text} NULL,
        region {text} NULL,
        user_id {text} NOT NULL,
        username {text} NOT NULL,
        reason {text} NOT NULL,
        time {int} NOT NULL
    ) {table}"),
    All("CREATE INDEX kiln_orphan_project ON kiln_orphan (project, time)"),
];
