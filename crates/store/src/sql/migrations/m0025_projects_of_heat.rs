//! Which projects Kiln answers for while it stands before a Heat.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // A project without a row belongs to Heat.
    All("CREATE TABLE IF NOT EXISTS kiln_project_owner (
        project {name} NOT NULL PRIMARY KEY,
        owner {word} NOT NULL
    ) {table}"),
    All("INSERT INTO kiln_project_owner (project, owner) SELECT DISTINCT project, 'kiln' FROM kiln_take_over \
         WHERE state = 'switched' AND project NOT IN (SELECT project FROM kiln_project_owner)"),
];
