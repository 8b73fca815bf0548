//! What the tests work with.

use kiln_plan::Catalog;
use kiln_resource::{Registry, shipped};

/// The types that come with Kiln, without their drivers.
pub(crate) fn catalog() -> Catalog {
    Catalog::new(Registry::build(shipped::types().unwrap(), |_| None))
}
