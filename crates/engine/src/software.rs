//! The software configs and deployments of a project, for drivers.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_resource::{Failure, FailureKind, Software, SoftwareConfig, SoftwareDeployment};
use kiln_store::{Error, Store};

/// Reads the configs and deployments of a project.
pub struct StoredSoftware {
    store: Arc<dyn Store>,
    project: String,
}

impl StoredSoftware {
    pub(crate) fn new(store: &Arc<dyn Store>, project: &str) -> Self {
        Self { store: Arc::clone(store), project: project.to_owned() }
    }
}

#[async_trait]
impl Software for StoredSoftware {
    async fn config(&self, id: &str) -> Result<Option<SoftwareConfig>, Failure> {
        let found = self.store.software_config(id).await.map_err(|error| failure(&error))?;
        Ok(found.filter(|config| config.project == self.project))
    }

    async fn deployment(&self, id: &str) -> Result<Option<SoftwareDeployment>, Failure> {
        let found = self.store.software_deployment(id).await.map_err(|error| failure(&error))?;
        Ok(found.filter(|deployment| deployment.project == self.project))
    }

    async fn is_referenced(&self, config: &str) -> Result<bool, Failure> {
        self.store.is_config_referenced(config).await.map_err(|error| failure(&error))
    }
}

/// A read can be repeated.
fn failure(error: &Error) -> Failure {
    Failure::new(FailureKind::NotSent, "ServiceUnavailable", error.to_string())
}
