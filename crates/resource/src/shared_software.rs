//! Software configs and deployments: rows of Kiln's own store that users, resources and the agents in servers share.

mod result;
mod schema;

use async_trait::async_trait;
use jiff::Timestamp;
use kiln_value::{Map, Value, value};
use serde::{Deserialize, Serialize};

use crate::Failure;

pub use self::result::OUTPUTS;
pub use self::schema::{InvalidSchema, inputs, outputs};

/// The entry of a server's data with what the agent in the server has to know to collect its metadata.
pub const COLLECT: &str = "os_collect_config";
/// The key of the metadata with it.
const COLLECT_METADATA: &str = "os-collect-config";

/// The entry of a server's data with the object of Swift in which its agent reads the metadata: `container` and `object`.
pub const METADATA_OBJECT: &str = "metadata_object";
/// The entry of a server's data with the queue of Zaqar in which its agent reads the metadata: `queue`, and `signed`, the
/// signature with which messages are posted.
pub const METADATA_QUEUE: &str = "metadata_queue";

/// The group of configs without one.
pub const UNGROUPED: &str = "Heat::Ungrouped";

/// A configuration for servers. It never changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoftwareConfig {
    /// ID: a UUID.
    pub id: String,
    /// Project ID.
    pub project: String,
    /// Name; those of a server are sorted by it.
    pub name: Option<String>,
    /// Namespace, for the tools in servers.
    pub group: Option<String>,
    /// The rest.
    pub body: ConfigBody,
    /// Time of creation.
    pub created: Timestamp,
}

/// What a config contains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConfigBody {
    /// A script, or a map.
    pub config: Value,
    /// The inputs; those of a deployment have values.
    pub inputs: Vec<Value>,
    /// The outputs.
    pub outputs: Vec<Value>,
    /// Options of the configuration tool.
    pub options: Value,
}

/// A config that is applied to a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoftwareDeployment {
    /// ID: a UUID.
    pub id: String,
    /// Project ID.
    pub project: String,
    /// Project of the users of the stack, who may read it too.
    pub user_project: Option<String>,
    /// ID of the config.
    pub config: String,
    /// ID of the server.
    pub server: String,
    /// The rest.
    pub body: DeploymentBody,
    /// Time of creation.
    pub created: Timestamp,
    /// Time of the last update.
    pub updated: Option<Timestamp>,
}

/// What a deployment contains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeploymentBody {
    /// Values of the inputs.
    pub inputs: Value,
    /// Values of the outputs.
    pub outputs: Value,
    /// The action that it belongs to.
    pub action: Option<String>,
    /// `IN_PROGRESS`, `COMPLETE`, `FAILED`, or what a user has written.
    pub status: Option<String>,
    /// The reason of the status.
    pub reason: String,
}

/// A change of the stored configs and deployments. Each may be repeated.
#[derive(Clone, Debug, PartialEq)]
pub enum SoftwareChange {
    /// Stores a config.
    PutConfig(SoftwareConfig),
    /// Deletes a config, unless a deployment refers to it.
    DropConfig(String),
    /// Stores a deployment.
    PutDeployment(SoftwareDeployment),
    /// Changes a deployment, if it exists.
    ChangeDeployment(SoftwareDeployment),
    /// Fails a deployment that still waits for a signal.
    CancelDeployment(String),
    /// Deletes a deployment.
    DropDeployment(String),
}

/// A server whose agent does not ask Kiln for its metadata: they are written where the agent reads them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PushedServer {
    /// The data of its resource, with [`METADATA_OBJECT`] or [`METADATA_QUEUE`].
    pub data: Map,
    /// The metadata, with the deployments.
    pub metadata: Map,
}

/// The stored configs and deployments of the project of a stack, for drivers. They change them by
/// [`crate::Step::software`] and [`crate::Received::software`].
#[async_trait]
pub trait Software: Send + Sync {
    /// A config.
    async fn config(&self, id: &str) -> Result<Option<SoftwareConfig>, Failure>;
    /// A deployment.
    async fn deployment(&self, id: &str) -> Result<Option<SoftwareDeployment>, Failure>;
    /// Whether a deployment refers to a config.
    async fn is_referenced(&self, config: &str) -> Result<bool, Failure>;
    /// The configs that are deployed to a server.
    async fn deployed(&self, server: &str) -> Result<Vec<SoftwareConfig>, Failure>;
    /// The server with this ID, in any stack; `None` if its agent asks for its metadata, or if it is deleted.
    async fn pushed_server(&self, server: &str) -> Result<Option<PushedServer>, Failure>;
    /// Whether an object with this ID belongs to a resource of the project.
    async fn is_of_a_resource(&self, object: &str) -> Result<bool, Failure>;
}

/// Nothing is stored: for validation before there is a stack.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSoftware;

#[async_trait]
impl Software for NoSoftware {
    async fn config(&self, _: &str) -> Result<Option<SoftwareConfig>, Failure> {
        Ok(None)
    }

    async fn deployment(&self, _: &str) -> Result<Option<SoftwareDeployment>, Failure> {
        Ok(None)
    }

    async fn is_referenced(&self, _: &str) -> Result<bool, Failure> {
        Ok(false)
    }

    async fn deployed(&self, _: &str) -> Result<Vec<SoftwareConfig>, Failure> {
        Ok(Vec::new())
    }

    async fn pushed_server(&self, _: &str) -> Result<Option<PushedServer>, Failure> {
        Ok(None)
    }

    async fn is_of_a_resource(&self, _: &str) -> Result<bool, Failure> {
        Ok(false)
    }
}

/// A time as clients see it, in whole seconds: `2026-11-20T06:52:45Z`.
pub fn instant(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// Adds what the agent in a server reads to the metadata of its resource: how to collect them, by the data of the
/// resource, and the deployments.
pub fn add_for_agent(data: &Map, deployed: &[SoftwareConfig], metadata: &mut Map) {
    let collect = data.get(COLLECT).and_then(Value::as_map);
    if let Some(collect) = collect {
        let mut all = metadata.get(COLLECT_METADATA).and_then(Value::as_map).cloned().unwrap_or_default();
        all.extend(collect.clone());
        metadata.insert(COLLECT_METADATA.to_owned(), all.into());
    }
    if collect.is_some() || !deployed.is_empty() {
        let views = deployed.iter().map(|config| Value::from(config.view()));
        metadata.insert("deployments".to_owned(), views.collect());
    }
}

impl SoftwareConfig {
    /// The config as agents and clients read it.
    pub fn view(&self) -> Map {
        let mut view = self.summary();
        view.insert("config".to_owned(), self.body.config.clone());
        view.insert("inputs".to_owned(), Value::List(self.body.inputs.clone()));
        view.insert("outputs".to_owned(), Value::List(self.body.outputs.clone()));
        view.insert("options".to_owned(), self.body.options.clone());
        view
    }

    /// The config as lists show it.
    pub fn summary(&self) -> Map {
        Map::from_iter([
            ("id".to_owned(), self.id.as_str().into()),
            ("name".to_owned(), self.name.clone().into()),
            ("group".to_owned(), self.group.clone().into()),
            ("creation_time".to_owned(), instant(self.created).into()),
        ])
    }

    /// The values of the inputs; null for those without.
    pub fn input_values(&self) -> Map {
        let pairs = self.body.inputs.iter().filter_map(|input| {
            Some((input.str_at("name")?.to_owned(), input.get("value").cloned().unwrap_or_default()))
        });
        pairs.collect()
    }
}

impl SoftwareDeployment {
    /// The deployment as clients read it.
    pub fn view(&self) -> Value {
        let body = &self.body;
        let mut shown = value!({
            "id": (&self.id),
            "server_id": (&self.server),
            "input_values": (body.inputs.clone()),
            "output_values": (body.outputs.clone()),
            "action": (body.action.clone()),
            "status": (body.status.clone()),
            "status_reason": (&body.reason),
            "config_id": (&self.config),
            "creation_time": (instant(self.created)),
        });
        if let (Some(updated), Some(entries)) = (self.updated, shown.as_map_mut()) {
            entries.insert("updated_time".to_owned(), instant(updated).into());
        }
        shown
    }

    /// Ends the wait for a signal; false if it does not wait.
    pub fn cancel(&mut self) -> bool {
        let waits = self.is_in_progress();
        if waits {
            (self.body.status, self.body.reason) = (Some("FAILED".to_owned()), "Deployment cancelled.".to_owned());
        }
        waits
    }

    /// Whether it waits for a signal.
    pub fn is_in_progress(&self) -> bool {
        self.body.status.as_deref() == Some("IN_PROGRESS")
    }
}
