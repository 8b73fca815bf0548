//! Guards.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // Without `stack`, a guard is of all stacks of its project. `body` says what it forbids. A lifted guard stays until its stack
    // is purged, so that the numbers of rows and of lifted rows change with each change of the guards.
    All("CREATE TABLE IF NOT EXISTS kiln_guard (
        seq {serial},
        id {id} NOT NULL,
        project {name} NOT NULL,
        stack {id} NULL,
        body {text} NOT NULL,
        user_id {text} NOT NULL,
        username {text} NOT NULL,
        created {int} NOT NULL,
        lifted {int} NULL,
        lifted_by {text} NULL
    ) {table}"),
    All("CREATE UNIQUE INDEX kiln_guard_id ON kiln_guard (id)"),
    All("CREATE INDEX kiln_guard_project ON kiln_guard (project, lifted)"),
    All("CREATE INDEX kiln_guard_stack ON kiln_guard (stack)"),
    // The version of the schema that the engine knows.
    All("ALTER TABLE kiln_engine ADD COLUMN known_schema {int} NULL"),
];
