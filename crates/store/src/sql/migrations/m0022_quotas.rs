//! Quotas of projects.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // `most`: -1 is no limit.
    All("CREATE TABLE IF NOT EXISTS kiln_quota (
        project {name} NOT NULL,
        name {word} NOT NULL,
        most {int} NOT NULL
    ) {table}"),
    All("CREATE UNIQUE INDEX kiln_quota_of ON kiln_quota (project, name)"),
];
