//! Drift that is watched.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // `stack` is empty for the schedule of a project. `every` is in microseconds; 0: never.
    All("CREATE TABLE IF NOT EXISTS kiln_drift_schedule (
        project {name} NOT NULL,
        stack {id} NOT NULL,
        every {int} NOT NULL,
        user_id {text} NOT NULL,
        username {text} NOT NULL,
        created {int} NOT NULL
    ) {table}"),
    All("CREATE UNIQUE INDEX kiln_drift_schedule_of ON kiln_drift_schedule (project, stack)"),
    // `due` is null until somebody decides when the stack is compared. `mark` is a claim, which ends when it is due again.
    All("CREATE TABLE IF NOT EXISTS kiln_drift (
        stack {id} NOT NULL,
        due {int} NULL,
        mark {id} NULL,
        status {word} NULL,
        body {text} NULL,
        checked {int} NULL,
        since {int} NULL
    ) {table}"),
    All("CREATE UNIQUE INDEX kiln_drift_stack ON kiln_drift (stack)"),
    All("CREATE INDEX kiln_drift_due ON kiln_drift (due)"),
    All("CREATE INDEX kiln_drift_status ON kiln_drift (status)"),
];
