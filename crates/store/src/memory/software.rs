//! Software configs and deployments.

use async_trait::async_trait;
use kiln_resource::{Action, ConfigBody, Resource, SoftwareChange, SoftwareConfig, SoftwareDeployment, Status};

use super::MemoryStore;
use super::state::{State, micro};
use crate::Error;
use crate::software_store::{ConfigQuery, DeploymentQuery, SoftwareStore};

impl State {
    /// Makes a change. A config with deployments is kept.
    pub(super) fn change_software(&mut self, change: &SoftwareChange) {
        match change {
            SoftwareChange::PutConfig(config) => {
                let stored = SoftwareConfig { created: micro(config.created), ..config.clone() };
                self.software_configs.entry(config.id.clone()).or_insert(stored);
            }
            SoftwareChange::DropConfig(id) if self.is_referenced(id) => {}
            SoftwareChange::DropConfig(id) => drop(self.software_configs.remove(id)),
            SoftwareChange::ChangeDeployment(deployment) if !self.software_deployments.contains_key(&deployment.id) => {
            }
            SoftwareChange::PutDeployment(deployment) | SoftwareChange::ChangeDeployment(deployment) => {
                let (created, updated) = (micro(deployment.created), deployment.updated.map(micro));
                let stored = SoftwareDeployment { created, updated, ..deployment.clone() };
                self.software_deployments.insert(deployment.id.clone(), stored);
            }
            SoftwareChange::CancelDeployment(id) => {
                if let Some(deployment) = self.software_deployments.get_mut(id) {
                    deployment.cancel();
                }
            }
            SoftwareChange::DropDeployment(id) => drop(self.software_deployments.remove(id)),
        }
    }

    fn is_referenced(&self, config: &str) -> bool {
        self.software_deployments.values().any(|deployment| deployment.config == config)
    }

    fn deployments(&self, query: &DeploymentQuery) -> Vec<&SoftwareDeployment> {
        let matches = |deployment: &&SoftwareDeployment| {
            let of_project = query.project.as_ref().is_none_or(|project| {
                deployment.project == *project || deployment.user_project.as_ref() == Some(project)
            });
            of_project && query.server.as_ref().is_none_or(|server| deployment.server == *server)
        };
        let mut found: Vec<&SoftwareDeployment> = self.software_deployments.values().filter(matches).collect();
        found.sort_by_key(|deployment| (deployment.created, deployment.id.as_str()));
        found
    }
}

#[async_trait]
impl SoftwareStore for MemoryStore {
    async fn change_software(&self, change: &SoftwareChange) -> Result<(), Error> {
        let (mut state, _) = self.open();
        match change {
            SoftwareChange::DropConfig(id) if state.is_referenced(id) => return Err(Error::Referenced(id.clone())),
            SoftwareChange::PutDeployment(deployment) | SoftwareChange::ChangeDeployment(deployment)
                if !state.software_configs.contains_key(&deployment.config) =>
            {
                return Err(Error::NotFound(deployment.config.clone()));
            }
            _ => state.change_software(change),
        }
        Ok(())
    }

    async fn software_config(&self, id: &str) -> Result<Option<SoftwareConfig>, Error> {
        Ok(self.open().0.software_configs.get(id).cloned())
    }

    async fn software_configs(&self, query: &ConfigQuery) -> Result<Vec<SoftwareConfig>, Error> {
        let (state, _) = self.open();
        let place = |config: &SoftwareConfig| (config.created, config.id.clone());
        let marker = query.marker.as_ref().and_then(|id| state.software_configs.get(id)).map(place);
        let matches = |config: &&SoftwareConfig| {
            query.project.as_ref().is_none_or(|project| config.project == *project)
                && marker.as_ref().is_none_or(|marker| place(config) < *marker)
        };
        let mut found: Vec<SoftwareConfig> = state.software_configs.values().filter(matches).cloned().collect();
        found.sort_by_key(|config| std::cmp::Reverse(place(config)));
        found.truncate(query.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX));
        Ok(found.into_iter().map(|config| SoftwareConfig { body: ConfigBody::default(), ..config }).collect())
    }

    async fn count_software_configs(&self, project: &str) -> Result<u64, Error> {
        let (state, _) = self.open();
        Ok(state.software_configs.values().filter(|config| config.project == project).count() as u64)
    }

    async fn software_deployment(&self, id: &str) -> Result<Option<SoftwareDeployment>, Error> {
        Ok(self.open().0.software_deployments.get(id).cloned())
    }

    async fn software_deployments(&self, query: &DeploymentQuery) -> Result<Vec<SoftwareDeployment>, Error> {
        Ok(self.open().0.deployments(query).into_iter().cloned().collect())
    }

    async fn count_software_deployments(&self, project: &str) -> Result<u64, Error> {
        let query = DeploymentQuery { project: Some(project.to_owned()), server: None };
        Ok(self.open().0.deployments(&query).len() as u64)
    }

    async fn deployed_configs(&self, query: &DeploymentQuery) -> Result<Vec<SoftwareConfig>, Error> {
        let (state, _) = self.open();
        let config = |deployment: &SoftwareDeployment| state.software_configs.get(&deployment.config).cloned();
        let mut found: Vec<SoftwareConfig> = state.deployments(query).into_iter().filter_map(config).collect();
        found.sort_by_key(|config| config.name.clone());
        Ok(found)
    }

    async fn resources_by_physical_id(&self, project: &str, id: &str) -> Result<Vec<Resource>, Error> {
        Ok(self.open().0.resources_of_project(project, |row| row.physical_id.as_deref() == Some(id)))
    }

    async fn creates_without_object(&self, project: &str, implementation: &str) -> Result<Vec<Resource>, Error> {
        let unmade = |row: &Resource| {
            let is_create = row.physical_id.is_none() && row.state.action == Action::Create;
            is_create && row.state.status != Status::Complete && row.implementation == implementation
        };
        Ok(self.open().0.resources_of_project(project, unmade))
    }

    async fn is_config_referenced(&self, id: &str) -> Result<bool, Error> {
        Ok(self.open().0.is_referenced(id))
    }
}
