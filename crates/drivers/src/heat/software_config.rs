//! Software configs: `OS::Heat::SoftwareConfig`, `OS::Heat::StructuredConfig`, `OS::Heat::SoftwareComponent`,
//! `OS::Heat::CloudConfig` and `OS::Heat::MultipartMime`.
//!
//! The object is a row of Kiln's store with the ID of the resource. It is stored and deleted with the step.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use kiln_resource::shared_software::{UNGROUPED, inputs, outputs};
use kiln_resource::{
    ConfigBody, Context, Driver, Facts, Failure, Found, Operation, SoftwareChange, SoftwareConfig, Step, TypeRules,
};
use kiln_value::{Class, Diagnostic, Map, Value, value};

use super::{cloud_config, multipart};
use crate::validation::failed;

/// The group of components: the agents in servers select the config of the action.
pub(super) const COMPONENT: &str = "component";

/// The drivers of the types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Config {
    /// A text.
    Software,
    /// A map.
    Structured,
    /// Several configs, each for some actions.
    Component,
    /// A map as YAML for cloud-init.
    CloudInit,
    /// Several configs in a MIME message.
    Multipart,
}

impl Config {
    pub(super) fn of_type(name: &str) -> Option<Self> {
        match name {
            "OS::Heat::SoftwareConfig" => Some(Self::Software),
            "OS::Heat::StructuredConfig" => Some(Self::Structured),
            "OS::Heat::SoftwareComponent" => Some(Self::Component),
            "OS::Heat::CloudConfig" => Some(Self::CloudInit),
            "OS::Heat::MultipartMime" => Some(Self::Multipart),
            _ => None,
        }
    }

    fn attribute(self) -> &'static str {
        if self == Self::Component { "configs" } else { "config" }
    }

    async fn content(self, cx: &Context<'_>) -> Result<Value, Failure> {
        let property = |name: &str| cx.facts.property(name).clone();
        Ok(match self {
            Self::Software | Self::Structured => property("config"),
            Self::Component => value!({ "configs": (property("configs")) }),
            Self::CloudInit => cloud_config::document(cx.facts.property("cloud_config")).into(),
            Self::Multipart => multipart::message(cx).await?.into(),
        })
    }

    async fn create(self, cx: &Context<'_>) -> Result<Step, Failure> {
        let facts = cx.facts;
        let list = |name: &str| facts.property(name).as_list().unwrap_or_default().to_vec();
        let invalid = |error: kiln_resource::InvalidSchema| Failure::other(Class::ValueError, error.to_string());
        let group = match self {
            Self::Component => COMPONENT,
            _ => facts.property("group").as_str().unwrap_or(UNGROUPED),
        };
        let options = facts.property("options");
        let config = SoftwareConfig {
            id: facts.id.clone(),
            project: facts.stack.project_id.clone(),
            name: Some(facts.physical_name.clone()),
            group: Some(group.to_owned()),
            body: ConfigBody {
                config: self.content(cx).await?,
                inputs: inputs(list("inputs")).map_err(invalid)?,
                outputs: outputs(list("outputs")).map_err(invalid)?,
                options: if options.is_truthy() { options.clone() } else { Map::new().into() },
            },
            created: time(cx.now),
        };
        let step = Step::wait("stored", Duration::ZERO).id(&config.id);
        Ok(step.software(SoftwareChange::PutConfig(config)))
    }
}

/// The time of a step.
pub(super) fn time(now: f64) -> jiff::Timestamp {
    #[expect(clippy::cast_possible_truncation, reason = "microseconds of this century")]
    let micros = (now * 1e6) as i64;
    jiff::Timestamp::from_microsecond(micros).unwrap_or_default()
}

/// The change that deletes a config; refused while a deployment of a user refers to it.
async fn delete(cx: &Context<'_>) -> Result<Step, Failure> {
    let Some(id) = cx.facts.physical_id.as_deref() else { return Ok(Step::done()) };
    if cx.software.is_referenced(id).await? {
        let text = format!("Software config with id {id} can not be deleted as it is referenced.");
        return Err(Failure::other(Class::InvalidRestrictedAction, text));
    }
    Ok(Step::done().software(SoftwareChange::DropConfig(id.to_owned())))
}

impl TypeRules for Config {
    fn validate(&self, facts: &Facts) -> Result<(), Diagnostic> {
        if *self != Self::Component {
            return Ok(());
        }
        let mut seen = BTreeSet::new();
        let configs = facts.property("configs").as_list().unwrap_or_default();
        let mut actions = configs.iter().filter_map(|config| config.get("actions")?.as_list()).flatten();
        let repeated = actions.any(|action| action.as_str().is_some_and(|action| !seen.insert(action)));
        if repeated {
            return Err(failed(format!(
                "Defining more than one configuration for the same action in SoftwareComponent \"{}\" is not allowed.",
                facts.name
            )));
        }
        Ok(())
    }
}

#[async_trait]
impl Driver for Config {
    async fn start(&self, cx: &Context<'_>, operation: &Operation) -> Result<Step, Failure> {
        match operation {
            Operation::Create => self.create(cx).await,
            Operation::Delete => delete(cx).await,
            _ => Ok(Step::done()),
        }
    }

    /// There is no object in the cloud.
    async fn find(&self, _: &Context<'_>) -> Result<Found, Failure> {
        Ok(Found::NotMade)
    }

    fn needs_cloud(&self) -> bool {
        false
    }

    async fn attributes(&self, cx: &Context<'_>, names: &[&str]) -> Result<Map, Failure> {
        let name = self.attribute();
        let Some(id) = cx.facts.physical_id.as_deref().filter(|_| names.contains(&name) || names.contains(&"show"))
        else {
            return Ok(Map::new());
        };
        let stored = cx.software.config(id).await?;
        let mut found = Map::new();
        if names.contains(&"show") {
            found.insert(
                "show".to_owned(),
                stored.as_ref().map(|config| Value::from(config.view())).unwrap_or_default(),
            );
        }
        if names.contains(&name) {
            let content = stored.map(|config| config.body.config).unwrap_or_default();
            let shown = match self {
                Self::Component => content.get("configs").cloned().unwrap_or_default(),
                _ => content,
            };
            found.insert(name.to_owned(), shown);
        }
        Ok(found)
    }
}
