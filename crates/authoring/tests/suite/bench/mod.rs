//! Helpers for the tests.

use kiln_plan::ResourceTypes;
use kiln_resource::{Registry, shipped};

/// The built-in types, without their drivers.
pub(crate) fn catalog() -> ResourceTypes {
    ResourceTypes::new(Registry::build(shipped::types().unwrap(), |_| None))
}
