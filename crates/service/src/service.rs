//! The service and its dependencies.

use std::sync::Arc;

use kiln_identity::{Identity, Policy};
use kiln_stack::{Backends, LoadedStack};
use kiln_store::{Error, Stack};
use kiln_view::RecentReads;

use crate::{HeatProjects, Options, SharedCredentials, TemplateReader};

/// The use cases. Cheap to clone; each file of this crate contains the methods of one use case.
#[derive(Clone)]
pub struct Service {
    /// Options.
    pub options: Options,
    /// Store, resource types, clouds, time and randomness.
    pub backends: Backends,
    /// What clients read last.
    pub recent: Arc<RecentReads>,
    /// Authentication and credentials.
    pub identity: Arc<dyn Identity>,
    /// The policy.
    pub policy: Arc<Policy>,
    /// Reads templates from URLs; `None`: this is not allowed.
    pub templates: Option<Arc<dyn TemplateReader>>,
    /// The credentials that new stacks share.
    pub shared: SharedCredentials,
    /// The projects that are refused, because their stacks belong to a Heat.
    pub heat_projects: Arc<HeatProjects>,
}

impl Service {
    /// A stack with its content.
    ///
    /// # Errors
    /// Errors of the store; [`Error::Damaged`] if the stored template is invalid.
    pub async fn view(&self, stack: Stack) -> Result<LoadedStack, Error> {
        self.recent.view(&self.backends, stack).await
    }
}
