//! Software configs and deployments over the connection.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_resource::{Resource, SoftwareChange, SoftwareConfig, SoftwareDeployment};
use kiln_store::{ConfigQuery, DeploymentQuery, Error, SoftwareStore};

use super::StoreLink;

#[async_trait]
impl SoftwareStore for StoreLink {
    async fn change_software(&self, change: &SoftwareChange) -> Result<(), Error> {
        let (sim, change) = (Arc::clone(&self.sim), change.clone());
        self.write("change_software", async move { sim.store.change_software(&change).await }).await
    }

    async fn software_config(&self, id: &str) -> Result<Option<SoftwareConfig>, Error> {
        self.read("software_config", self.inner().software_config(id)).await
    }

    async fn software_configs(&self, query: &ConfigQuery) -> Result<Vec<SoftwareConfig>, Error> {
        self.read("software_configs", self.inner().software_configs(query)).await
    }

    async fn count_software_configs(&self, project: &str) -> Result<u64, Error> {
        self.read("count_software_configs", self.inner().count_software_configs(project)).await
    }

    async fn software_deployment(&self, id: &str) -> Result<Option<SoftwareDeployment>, Error> {
        self.read("software_deployment", self.inner().software_deployment(id)).await
    }

    async fn software_deployments(&self, query: &DeploymentQuery) -> Result<Vec<SoftwareDeployment>, Error> {
        self.read("software_deployments", self.inner().software_deployments(query)).await
    }

    async fn count_software_deployments(&self, project: &str) -> Result<u64, Error> {
        self.read("count_software_deployments", self.inner().count_software_deployments(project)).await
    }

    async fn deployed_configs(&self, query: &DeploymentQuery) -> Result<Vec<SoftwareConfig>, Error> {
        self.read("deployed_configs", self.inner().deployed_configs(query)).await
    }

    async fn resources_by_physical_id(&self, project: &str, id: &str) -> Result<Vec<Resource>, Error> {
        self.read("resources_by_physical_id", self.inner().resources_by_physical_id(project, id)).await
    }

    async fn creates_without_object(&self, project: &str, implementation: &str) -> Result<Vec<Resource>, Error> {
        self.read("creates_without_object", self.inner().creates_without_object(project, implementation)).await
    }

    async fn is_config_referenced(&self, id: &str) -> Result<bool, Error> {
        self.read("is_config_referenced", self.inner().is_config_referenced(id)).await
    }
}
