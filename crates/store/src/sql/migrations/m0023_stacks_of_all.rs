//! Lists of the stacks of all projects.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] =
    &[All("CREATE INDEX kiln_stack_of_all ON kiln_stack (parent_stack, deleted, created, id)")];
