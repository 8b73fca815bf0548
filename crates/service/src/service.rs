//! The service and its dependencies.

use std::sync::Arc;

use kiln_identity::{Identity, Policy};
use kiln_stack::Backends;

use crate::{Options, SharedCredentials, TemplateReader};

/// The use cases. Cheap to clone; each file of this crate contains the methods of one use case.
#[derive(Clone)]
pub struct Service {
    /// Options.
    pub options: Options,
    /// Store, resource types, clouds, time and randomness.
    pub backends: Backends,
    /// Authentication and credentials.
    pub identity: Arc<dyn Identity>,
    /// The policy.
    pub policy: Arc<Policy>,
    /// Reads templates from URLs; `None`: this is not allowed.
    pub templates: Option<Arc<dyn TemplateReader>>,
    /// The credentials that new stacks share.
    pub shared: SharedCredentials,
}
