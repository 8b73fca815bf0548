//! Stacks that are taken over from Heat.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // One row for each root stack. `digest` is that of its rows in Heat's tables.
    All("CREATE TABLE IF NOT EXISTS kiln_take_over (
        root {id} NOT NULL PRIMARY KEY,
        project {name} NOT NULL,
        name {text} NOT NULL,
        digest {word} NOT NULL,
        state {word} NOT NULL,
        reason {text} NOT NULL,
        time {int} NOT NULL
    ) {table}"),
    All("CREATE INDEX kiln_take_over_project ON kiln_take_over (project)"),
];
