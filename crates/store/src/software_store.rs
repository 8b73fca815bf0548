//! Software configs and deployments.

use async_trait::async_trait;
use kiln_resource::{Resource, SoftwareChange, SoftwareConfig, SoftwareDeployment};

use crate::Error;

/// Filters of a list of configs, newest first.
#[derive(Clone, Debug, Default)]
pub struct ConfigQuery {
    /// Project; `None`: all projects.
    pub project: Option<String>,
    /// Only configs after this one; ignored if it does not exist.
    pub marker: Option<String>,
    /// Maximum number.
    pub limit: Option<u64>,
}

/// Filters of a list of deployments, oldest first.
#[derive(Clone, Debug, Default)]
pub struct DeploymentQuery {
    /// Their project, or that of the users of their stack; `None`: all projects.
    pub project: Option<String>,
    /// Only those of this server.
    pub server: Option<String>,
}

/// Stores software configs and deployments.
#[async_trait]
pub trait SoftwareStore: Send + Sync {
    /// Changes a config or a deployment. [`Error::Referenced`] if a config to delete has deployments;
    /// [`Error::NotFound`] if a deployment refers to a config that does not exist. What is to be deleted may be
    /// missing.
    async fn change_software(&self, change: &SoftwareChange) -> Result<(), Error>;
    /// A config.
    async fn software_config(&self, id: &str) -> Result<Option<SoftwareConfig>, Error>;
    /// Configs without their bodies.
    async fn software_configs(&self, query: &ConfigQuery) -> Result<Vec<SoftwareConfig>, Error>;
    /// The number of configs of a project.
    async fn count_software_configs(&self, project: &str) -> Result<u64, Error>;
    /// A deployment.
    async fn software_deployment(&self, id: &str) -> Result<Option<SoftwareDeployment>, Error>;
    /// Deployments.
    async fn software_deployments(&self, query: &DeploymentQuery) -> Result<Vec<SoftwareDeployment>, Error>;
    /// The number of deployments of a project.
    async fn count_software_deployments(&self, project: &str) -> Result<u64, Error>;
    /// The configs of the deployments of a list: one for each deployment, sorted by name.
    async fn deployed_configs(&self, query: &DeploymentQuery) -> Result<Vec<SoftwareConfig>, Error>;
    /// The resources of a project whose object has this ID.
    async fn resources_by_physical_id(&self, project: &str, id: &str) -> Result<Vec<Resource>, Error>;
    /// The resources of a project with this implementation whose create is in progress or has failed, and which have no
    /// object yet.
    async fn creates_without_object(&self, project: &str, implementation: &str) -> Result<Vec<Resource>, Error>;
    /// Whether a deployment refers to a config.
    async fn is_config_referenced(&self, id: &str) -> Result<bool, Error>;
}
