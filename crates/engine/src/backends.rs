//! Dependencies of an engine, all behind traits.

use std::sync::Arc;

use kiln_plan::ResourceTypes;
use kiln_store::Store;

use crate::clock::{Chance, Clock};
use crate::clouds::Clouds;

/// Store, resource types, clouds, time and randomness.
#[derive(Clone)]
pub struct Backends {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The resource types and the operator's environment.
    pub resource_types: Arc<ResourceTypes>,
    /// The clouds.
    pub clouds: Arc<dyn Clouds>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of randomness.
    pub chance: Arc<Chance>,
}
