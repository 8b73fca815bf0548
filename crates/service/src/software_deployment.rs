//! Creates, reads, changes and deletes software deployments.

use kiln_identity::Caller;
use kiln_resource::{DeploymentBody, Resource, SoftwareChange, SoftwareConfig, SoftwareDeployment};
use kiln_store::quota::Quota;
use kiln_store::{DeploymentQuery, Stack};
use kiln_value::{Map, Value};

use crate::{Error, Service};

/// Maximum length of the ID of a project.
const PROJECT_LIMIT: usize = 64;

/// A software deployment to create.
#[derive(Clone, Debug, Default)]
pub struct NewDeployment {
    /// ID of the config.
    pub config: String,
    /// ID of the server.
    pub server: String,
    /// Values of the inputs.
    pub inputs: Value,
    /// The action.
    pub action: Option<String>,
    /// The status.
    pub status: Option<String>,
    /// The reason of the status.
    pub reason: String,
    /// Project of the users who may read it.
    pub user_project: Option<String>,
}

/// A change of a software deployment; what is not given is kept.
#[derive(Clone, Debug, Default)]
pub struct DeploymentChange {
    /// ID of the config.
    pub config: Option<String>,
    /// Values of the inputs.
    pub inputs: Option<Value>,
    /// Values of the outputs.
    pub outputs: Option<Value>,
    /// The action.
    pub action: Option<String>,
    /// The status.
    pub status: Option<String>,
    /// The reason of the status.
    pub reason: Option<String>,
}

impl Service {
    /// Creates a deployment in the project of the caller.
    pub async fn create_deployment(&self, caller: &Caller, new: NewDeployment) -> Result<SoftwareDeployment, Error> {
        let store = &self.backends.store;
        if let Some(limit) =
            self.limit_of(&caller.project_id, Quota::SoftwareDeployments).await?.filter(|_| !caller.is_admin)
            && store.count_software_deployments(&caller.project_id).await? >= limit
        {
            let text = format!(
                "You have reached the maximum software deployments per tenant, {limit}. Please delete some deployments."
            );
            return Err(Error::Limit(text));
        }
        if new.user_project.as_ref().is_some_and(|project| project.chars().count() > PROJECT_LIMIT) {
            let text = format!("\"stack_user_project_id\" should be no more than {PROJECT_LIMIT} characters");
            return Err(Error::Value(text));
        }
        let deployment = SoftwareDeployment {
            id: self.backends.chance.uuid().to_string(),
            project: caller.project_id.clone(),
            user_project: new.user_project,
            config: new.config,
            server: new.server,
            body: DeploymentBody {
                inputs: if new.inputs.is_truthy() { new.inputs } else { Map::new().into() },
                outputs: Value::Null,
                action: new.action,
                status: new.status,
                reason: new.reason,
            },
            created: self.backends.clock.now(),
            updated: None,
        };
        self.store_deployment(caller, SoftwareChange::PutDeployment(deployment.clone()), &deployment, true).await?;
        Ok(deployment)
    }

    /// Deployments that the caller can see; those of all projects for an administrator.
    pub async fn deployments(&self, caller: &Caller, server: Option<String>) -> Result<Vec<SoftwareDeployment>, Error> {
        Ok(self.backends.store.software_deployments(&visible(caller, server)).await?)
    }

    /// The configs that are deployed to a server, sorted by name.
    pub async fn deployed_configs(&self, caller: &Caller, server: &str) -> Result<Vec<SoftwareConfig>, Error> {
        Ok(self.backends.store.deployed_configs(&visible(caller, Some(server.to_owned()))).await?)
    }

    /// A deployment that the caller can see.
    pub async fn deployment(&self, caller: &Caller, id: &str) -> Result<SoftwareDeployment, Error> {
        let deployment = self.backends.store.software_deployment(id).await?;
        let is_visible = |deployment: &SoftwareDeployment| {
            let projects = [Some(&deployment.project), deployment.user_project.as_ref()];
            caller.is_admin || projects.contains(&Some(&caller.project_id))
        };
        deployment.filter(is_visible).ok_or_else(|| Error::NoDeployment(id.to_owned()))
    }

    /// Changes a deployment. As in Heat, empty values do not change anything.
    pub async fn change_deployment(
        &self,
        caller: &Caller,
        id: &str,
        change: DeploymentChange,
    ) -> Result<SoftwareDeployment, Error> {
        let mut deployment = self.deployment(caller, id).await?;
        let before = deployment.config.clone();
        let body = &mut deployment.body;
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        body.inputs = change.inputs.filter(Value::is_truthy).unwrap_or_else(|| std::mem::take(&mut body.inputs));
        body.outputs = change.outputs.filter(Value::is_truthy).unwrap_or_else(|| std::mem::take(&mut body.outputs));
        body.action = given(change.action).or_else(|| body.action.take());
        body.status = given(change.status).or_else(|| body.status.take());
        body.reason = given(change.reason).unwrap_or_else(|| std::mem::take(&mut body.reason));
        deployment.config = given(change.config).unwrap_or(deployment.config);
        deployment.updated = Some(self.backends.clock.now());
        let changed = SoftwareChange::ChangeDeployment(deployment.clone());
        self.store_deployment(caller, changed, &deployment, deployment.config != before).await?;
        Ok(deployment)
    }

    /// Deletes a deployment.
    pub async fn delete_deployment(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let deployment = self.deployment(caller, id).await?;
        let change = SoftwareChange::DropDeployment(deployment.id);
        Ok(self.change_on(&deployment.project, &deployment.server, &change).await?)
    }

    /// The metadata of a resource for clients and for the agents in servers, with the deployments of a server.
    pub async fn metadata_of(&self, stack: &Stack, row: &Resource) -> Result<Value, Error> {
        Ok(kiln_stack::stored_software::metadata_of(&*self.backends.store, &stack.project, row).await?.into())
    }

    /// Stores a deployment; its server is told if it `reaches` it. A config that does not exist, or that the caller cannot
    /// see, is refused.
    async fn store_deployment(
        &self,
        caller: &Caller,
        change: SoftwareChange,
        deployment: &SoftwareDeployment,
        reaches: bool,
    ) -> Result<(), Error> {
        let config = deployment.config.as_str();
        let missing = || Error::Value(format!("Config with id {config} not found"));
        if matches!(self.config(caller, config).await, Err(Error::NoConfig(_))) {
            return Err(missing());
        }
        let stored = if reaches {
            self.change_on(&deployment.project, &deployment.server, &change).await
        } else {
            self.backends.store.change_software(&change).await
        };
        match stored {
            Err(kiln_store::Error::NotFound(_)) => Err(missing()),
            result => Ok(result?),
        }
    }
}

fn visible(caller: &Caller, server: Option<String>) -> DeploymentQuery {
    DeploymentQuery { project: (!caller.is_admin).then(|| caller.project_id.clone()), server }
}
