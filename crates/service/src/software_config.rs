//! Creates, reads and deletes software configs.

use kiln_identity::Caller;
use kiln_resource::shared_software::{inputs, outputs};
use kiln_resource::{ConfigBody, SoftwareChange, SoftwareConfig};
use kiln_store::quota::Quota;
use kiln_value::{Map, Value};

use crate::{Error, Service};

/// A software config to create.
#[derive(Clone, Debug, Default)]
pub struct NewConfig {
    /// Name.
    pub name: Option<String>,
    /// Namespace.
    pub group: Option<String>,
    /// The configuration.
    pub config: Value,
    /// Inputs.
    pub inputs: Vec<Value>,
    /// Outputs.
    pub outputs: Vec<Value>,
    /// Options.
    pub options: Value,
}

impl Service {
    /// Creates a config in the project of the caller.
    pub async fn create_config(&self, caller: &Caller, new: NewConfig) -> Result<SoftwareConfig, Error> {
        let store = &self.backends.store;
        if let Some(limit) =
            self.limit_of(&caller.project_id, Quota::SoftwareConfigs).await?.filter(|_| !caller.is_admin)
            && store.count_software_configs(&caller.project_id).await? >= limit
        {
            let text = format!(
                "You have reached the maximum software configs per tenant, {limit}. Please delete some configs."
            );
            return Err(Error::Limit(text));
        }
        let config = SoftwareConfig {
            id: self.backends.chance.uuid().to_string(),
            project: caller.project_id.clone(),
            name: new.name,
            group: new.group,
            body: ConfigBody {
                config: new.config,
                inputs: inputs(new.inputs)?,
                outputs: outputs(new.outputs)?,
                options: if new.options.is_truthy() { new.options } else { Map::new().into() },
            },
            created: self.backends.clock.now(),
        };
        store.change_software(&SoftwareChange::PutConfig(config.clone())).await?;
        Ok(config)
    }

    /// A config of the project of the caller.
    pub async fn config(&self, caller: &Caller, id: &str) -> Result<SoftwareConfig, Error> {
        let config = self.backends.store.software_config(id).await?;
        let visible = config.filter(|config| caller.is_admin || config.project == caller.project_id);
        visible.ok_or_else(|| Error::NoConfig(id.to_owned()))
    }

    /// Deletes a config without deployments.
    pub async fn delete_config(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let config = self.config(caller, id).await?;
        Ok(self.backends.store.change_software(&SoftwareChange::DropConfig(config.id)).await?)
    }
}
