//! Change sets.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    All("CREATE TABLE IF NOT EXISTS kiln_change_set (
        id {id} NOT NULL PRIMARY KEY,
        project {name} NOT NULL,
        stack {id} NOT NULL,
        stack_name {name} NOT NULL,
        name {name} NOT NULL,
        generation {int} NOT NULL,
        executed {int} NOT NULL,
        body {text} NULL,
        created {int} NOT NULL
    ) {table}"),
    All("CREATE UNIQUE INDEX kiln_change_set_name ON kiln_change_set (stack, name)"),
    All("CREATE INDEX kiln_change_set_project ON kiln_change_set (project, stack_name, created)"),
];
