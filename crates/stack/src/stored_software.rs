//! The software configs and deployments of a project, for drivers.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::SignedDuration;
use kiln_resource::shared_software::{METADATA_OBJECT, METADATA_QUEUE, PushedServer, add_for_agent};
use kiln_resource::{Action, Failure, FailureKind, Resource, Software, SoftwareConfig, SoftwareDeployment};
use kiln_store::{DeploymentQuery, Error, Message, MessageBody, Store, Timer};
use kiln_value::{Class, Map};

use crate::{Backends, LoadedStack};

/// Time for the service to store a deployment and to write the metadata itself.
const PUSH_LATER: SignedDuration = SignedDuration::from_secs(3);

/// Reads the configs and deployments of a project.
pub struct StoredSoftware {
    store: Arc<dyn Store>,
    project: String,
}

impl StoredSoftware {
    /// The configs and deployments of a project.
    pub fn new(store: &Arc<dyn Store>, project: &str) -> Self {
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
        let row = pushed_row(&*self.store, &self.project, server).await.map_err(|error| failure(&error))?;
        let Some(row) = row else { return Ok(None) };
        let metadata = metadata_of(&*self.store, &self.project, &row).await.map_err(|error| failure(&error))?;
        Ok(Some(PushedServer { data: row.data, metadata }))
    }

    async fn is_of_a_resource(&self, object: &str) -> Result<bool, Failure> {
        let rows = self.store.resources_by_physical_id(&self.project, object).await;
        Ok(!rows.map_err(|error| failure(&error))?.is_empty())
    }
}

/// Whether the metadata of a resource are written where its agent reads them.
fn is_pushed(row: &Resource) -> bool {
    let has = |key: &str| row.data.get(key).is_some_and(|place| !place.is_null());
    row.state.action != Action::Delete && (has(METADATA_OBJECT) || has(METADATA_QUEUE))
}

/// The server with this ID, if its metadata are written where its agent reads them.
///
/// # Errors
/// Errors of the store.
pub async fn pushed_server(backends: &Backends, project: &str, server: &str) -> Result<Option<Resource>, Error> {
    pushed_row(&*backends.store, project, server).await
}

async fn pushed_row(store: &dyn Store, project: &str, server: &str) -> Result<Option<Resource>, Error> {
    let rows = store.resources_by_physical_id(project, server).await?;
    Ok(rows.into_iter().find(is_pushed))
}

/// Tells the engine of a server to write its metadata a little later. It is sent before a deployment is stored, so that the
/// agent learns of the deployment even if the service dies before [`push_metadata`].
///
/// # Errors
/// Errors of the store.
pub async fn plan_push(backends: &Backends, server: &Resource) -> Result<(), Error> {
    let body = MessageBody::Timer(Timer { push_metadata: true });
    let message = backends.message(server.stack, Some(server.name.clone()), body);
    backends.store.send(&Message { due: message.due + PUSH_LATER, ..message }).await
}

/// Writes the metadata of a server where its agent reads them, after its deployments have changed.
///
/// # Errors
/// Errors of the store and of the cloud.
pub async fn push_metadata(backends: &Backends, row: &Resource) -> Result<(), Failure> {
    match LoadedStack::load(backends, row.stack).await.map_err(|error| failure(&error))? {
        Some(view) => view.push_metadata(row).await,
        None => Ok(()),
    }
}

/// The metadata of a resource for clients and for the agents in servers. The deployments of a server are not stored in it
/// but added here.
///
/// # Errors
/// Errors of the store.
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

/// The failure of an operation that cannot read the database. Nothing was sent to the cloud, so it can be repeated.
pub fn failure(error: &Error) -> Failure {
    Failure::new(FailureKind::NotSent, Class::ServiceUnavailable, error.to_string())
}
