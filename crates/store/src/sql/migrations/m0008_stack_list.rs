//! The list of a project's stacks reads only those that it shows: not the nested and the deleted ones.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] =
    &[All("CREATE INDEX kiln_stack_listed ON kiln_stack (project, parent_stack, deleted, created, id)")];
