//! The row of a resource is found by its name.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] = &[All("CREATE INDEX kiln_resource_name ON kiln_resource (stack, name{start})")];
