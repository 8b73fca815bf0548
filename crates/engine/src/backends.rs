//! What an engine works with. Everything outside is behind a trait.

use std::sync::Arc;

use kiln_plan::ResourceTypes;
use kiln_store::Store;

use crate::clock::{Chance, Clock};
use crate::clouds::Clouds;

/// Store, resource types, clouds, time and chance.
#[derive(Clone)]
pub struct Backends {
    /// Where stacks are stored.
    pub store: Arc<dyn Store>,
    /// The resource types and the operator's environment.
    pub resource_types: Arc<ResourceTypes>,
    /// The clouds.
    pub clouds: Arc<dyn Clouds>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub chance: Arc<Chance>,
}
