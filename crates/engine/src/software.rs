//! The software configs and deployments of a project, for drivers.

use std::sync::Arc;

use async_trait::async_trait;
use kiln_resource::software::{METADATA_OBJECT, METADATA_QUEUE, PushedServer, add_for_agent};
use kiln_resource::{Action, Failure, FailureKind, Resource, Software, SoftwareConfig, SoftwareDeployment};
use kiln_store::{DeploymentQuery, Error, Store};
use kiln_value::Map;

use crate::{Backends, View};

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

    async fn deployed(&self, server: &str) -> Result<Vec<SoftwareConfig>, Failure> {
        deployed(&*self.store, &self.project, server).await.map_err(|error| failure(&error))
    }

    async fn pushed_server(&self, server: &str) -> Result<Option<PushedServer>, Failure> {
        let rows = self.store.resources_by_physical_id(&self.project, server).await.map_err(|error| failure(&error))?;
        let Some(row) = rows.into_iter().find(is_pushed) else { return Ok(None) };
        let metadata = metadata_of(&*self.store, &self.project, &row).await.map_err(|error| failure(&error))?;
        Ok(Some(PushedServer { data: row.data, metadata }))
    }
}

/// Whether the metadata of a resource are written where its agent reads them.
fn is_pushed(row: &Resource) -> bool {
    let has = |key: &str| row.data.get(key).is_some_and(|place| !place.is_null());
    row.state.action != Action::Delete && (has(METADATA_OBJECT) || has(METADATA_QUEUE))
}

/// Writes the metadata of a server where its agent reads them, after its deployments have changed. Does nothing for other
/// servers.
///
/// # Errors Those of the store and of the cloud.
pub async fn push_metadata(backends: &Backends, project: &str, server: &str) -> Result<(), Failure> {
    let rows = backends.store.resources_by_physical_id(project, server).await.map_err(|error| failure(&error))?;
    let Some(row) = rows.into_iter().find(is_pushed) else { return Ok(()) };
    match View::load(backends, row.stack).await.map_err(|error| failure(&error))? {
        Some(view) => view.push_metadata(&row).await,
        None => Ok(()),
    }
}

/// The metadata of a resource for clients and for the agents in servers. The deployments of a server are not stored in it
/// but added here.
///
/// # Errors Those of the store.
pub async fn metadata_of(store: &dyn Store, project: &str, row: &Resource) -> Result<Map, Error> {
    let mut metadata = row.metadata.as_map().cloned().unwrap_or_default();
    let deployed = match &row.physical_id {
        Some(server) => deployed(store, project, server).await?,
        None => Vec::new(),
    };
    add_for_agent(&row.data, &deployed, &mut metadata);
    Ok(metadata)
}

/// The configs that are deployed to a server of a project. Other projects must not configure it.
async fn deployed(store: &dyn Store, project: &str, server: &str) -> Result<Vec<SoftwareConfig>, Error> {
    let query = DeploymentQuery { project: Some(project.to_owned()), server: Some(server.to_owned()) };
    let mut deployed = store.deployed_configs(&query).await?;
    deployed.retain(|config| config.project == project);
    Ok(deployed)
}

/// A read can be repeated.
fn failure(error: &Error) -> Failure {
    Failure::new(FailureKind::NotSent, "ServiceUnavailable", error.to_string())
}
