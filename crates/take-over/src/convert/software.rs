//! Software configs and deployments.

use kiln_resource::{ConfigBody, DeploymentBody, SoftwareConfig, SoftwareDeployment};
use kiln_store::TakenSoftware;
use kiln_value::Value;

use super::Converter;
use crate::heat::HeatSoftware;

impl Converter {
    /// Converts the configs and deployments of a project. Heat does not encrypt them, Kiln does.
    pub fn software(&self, heat: &HeatSoftware) -> TakenSoftware {
        let configs = heat.configs.iter().map(|old| {
            let part = |key: &str| old.config.get(key).cloned().unwrap_or_default();
            let list = |key: &str| part(key).as_list().map(<[Value]>::to_vec).unwrap_or_default();
            SoftwareConfig {
                id: old.id.clone(),
                project: old.project.clone(),
                name: old.name.clone(),
                group: old.group.clone(),
                body: ConfigBody {
                    config: part("config"),
                    inputs: list("inputs"),
                    outputs: list("outputs"),
                    options: part("options"),
                },
                created: old.created,
            }
        });
        let deployments = heat.deployments.iter().map(|old| SoftwareDeployment {
            id: old.id.clone(),
            project: old.project.clone(),
            user_project: old.user_project.clone(),
            config: old.config.clone(),
            server: old.server.clone(),
            body: DeploymentBody {
                inputs: old.inputs.clone(),
                outputs: old.outputs.clone(),
                action: old.action.clone(),
                status: old.status.clone(),
                reason: old.reason.clone(),
            },
            created: old.created,
            updated: old.updated,
        });
        TakenSoftware { configs: configs.collect(), deployments: deployments.collect() }
    }
}
