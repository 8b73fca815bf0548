//! Drift that is repaired by a schedule.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // 1: what has a low risk is repaired. The program before does not set it.
    All("ALTER TABLE kiln_drift_schedule ADD COLUMN repair {int} DEFAULT 0 NOT NULL"),
];
