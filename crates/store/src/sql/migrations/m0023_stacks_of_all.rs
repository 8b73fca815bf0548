//! Lists of the stacks of all projects.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    // Without the columns that are null for them: PostgreSQL would sort all the same.
    All("CREATE INDEX kiln_stack_of_all ON kiln_stack (created, id)"),
];
