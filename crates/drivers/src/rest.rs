//! Simple REST resources: one driver for all types with a `rest` section in their definition.

mod adopt;
mod body;
mod driver;
mod shape;

use std::sync::Arc;

use kiln_resource::{Driver, ResourceType};

pub(crate) use body::Written;
pub(crate) use driver::RestDriver;
pub(crate) use shape::{Edit, Shape};

/// The driver of a definition, with the differences of a type; `None` if it has no `rest` section.
pub(crate) fn shaped(resource_type: &ResourceType, shape: impl Shape + 'static) -> Option<Arc<dyn Driver>> {
    Some(Arc::new(RestDriver::shaped(resource_type, shape)?))
}
