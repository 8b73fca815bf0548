//! The row of a server is found by the ID of the server.

use super::Change::{self, All};

/// See [`super::MIGRATIONS`].
pub(super) const CHANGES: &[Change] =
    &[All("CREATE INDEX kiln_resource_physical ON kiln_resource {equal} (physical_id{start})")];
