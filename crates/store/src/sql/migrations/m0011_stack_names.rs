//! Nested stacks are found by name, and stacks by the project of their users.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[
    All("CREATE INDEX kiln_stack_name ON kiln_stack (project, name)"),
    All("CREATE INDEX kiln_stack_users ON kiln_stack (user_project{start}, name)"),
];
