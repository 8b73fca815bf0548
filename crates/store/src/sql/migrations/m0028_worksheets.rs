//! Worksheets.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    All("CREATE TABLE IF NOT EXISTS kiln_worksheet (
        seq {serial},
        id {id} NOT NULL,
        project {name} NOT NULL,
        kind {word} NOT NULL,
        worksheet_name {name} NULL,
        head {text} NOT NULL,
        body {text} NOT NULL,
        version {int} NOT NULL,
        created {int} NOT NULL,
        changed {int} NOT NULL
    ) {table}"),
    All("CREATE UNIQUE INDEX kiln_worksheet_id ON kiln_worksheet (id)"),
    All("CREATE UNIQUE INDEX kiln_worksheet_name ON kiln_worksheet (project, kind, worksheet_name)"),
    All("CREATE INDEX kiln_worksheet_changed ON kiln_worksheet (changed)"),
];
