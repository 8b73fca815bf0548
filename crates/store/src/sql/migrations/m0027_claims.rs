//! The objects that stacks take over.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // A claim holds until the request of its stack with this number has ended (`claims.rs`).
    All("CREATE TABLE IF NOT EXISTS kiln_claim (
        project {name} NOT NULL,
        object {word} NOT NULL,
        stack {id} NOT NULL,
        generation {int} NOT NULL
    ) {table}"),
    All("CREATE UNIQUE INDEX kiln_claim_of ON kiln_claim (project, object)"),
];
