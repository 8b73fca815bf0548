//! Operations of stacks.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // `desired` is as in `kiln_stack`, and only there if the operation set it. `user_id` is NULL if an engine requested it;
    // the last three are NULL until the operation ends.
    All("CREATE TABLE IF NOT EXISTS kiln_operation (
        seq {serial},
        id {id} NOT NULL,
        stack {id} NOT NULL,
        root {id} NOT NULL,
        project {name} NOT NULL,
        action {word} NOT NULL,
        generation {int} NOT NULL,
        user_id {text} NULL,
        username {text} NULL,
        request {text} NOT NULL,
        desired {word} NULL,
        begun {int} NOT NULL,
        ended {int} NULL,
        status {word} NULL,
        reason {text} NULL
    ) {table}"),
    All("CREATE UNIQUE INDEX kiln_operation_id ON kiln_operation (id)"),
    All("CREATE UNIQUE INDEX kiln_operation_request ON kiln_operation (stack, generation)"),
    All("CREATE INDEX kiln_operation_root ON kiln_operation (root, seq)"),
    All("ALTER TABLE kiln_event ADD COLUMN operation {id} NULL"),
];
