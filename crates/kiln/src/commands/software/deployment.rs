//! `kiln software deployment …`.

use clap::Args;
use kiln_console::output::{Cell, Format, List, One, OutputArgs};
use kiln_value::{Map, Value};

use super::deploy::DeployArgs;
use super::{IdsArg, missing};
use crate::commands::effect::Effect;
use crate::commands::stack::entries;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

group! {
    /// `software deployment …`.
    DeploymentCommand {
        Create(DeployArgs),
        List(ListArgs),
        Show(ShowArgs),
        Delete(DeleteArgs),
        /// Show what is deployed to a server
        #[command(subcommand)]
        Metadata(MetadataCommand),
        /// Show outputs of a software deployment
        #[command(subcommand)]
        Output(OutputCommand),
    }
}

group! {
    /// `software deployment metadata …`.
    MetadataCommand {
        Show(MetadataArgs),
    }
}

group! {
    /// `software deployment output …`.
    OutputCommand {
        Show(OutputArg),
    }
}

/// List the software deployments
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ListArgs {
    /// Only deployments to the server with this ID
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Show more columns
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Show a software deployment
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ShowArgs {
    /// ID of the deployment
    #[arg(value_name = "DEPLOYMENT")]
    deployment: String,
    /// Show the outputs, too
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Delete software deployments
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    deployments: IdsArg,
}

/// Show the configs that are deployed to a server, as its agent reads them
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct MetadataArgs {
    /// ID of the server
    #[arg(value_name = "SERVER")]
    server: String,
}

/// Show an output, or all
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct OutputArg {
    /// ID of the deployment
    #[arg(value_name = "DEPLOYMENT")]
    deployment: String,
    /// Name of the output
    #[arg(value_name = "OUTPUT-NAME", required_unless_present = "all", conflicts_with = "all")]
    output: Option<String>,
    /// Show all outputs
    #[arg(long)]
    all: bool,
}

impl ListArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let deployments = connection.client.software_deployments(self.server.as_deref()).await?;
        let mut columns = vec!["id", "config_id", "server_id", "action", "status"];
        if self.long {
            columns.extend(["creation_time", "status_reason"]);
        }
        let columns: Vec<(&str, &str)> = columns.into_iter().map(|name| (name, name)).collect();
        Ok(self.output.list(List::of(&deployments, &columns), Format::Table)?)
    }
}

/// What is shown of a deployment.
const COLUMNS: [&str; 9] = [
    "id",
    "server_id",
    "config_id",
    "creation_time",
    "updated_time",
    "status",
    "status_reason",
    "input_values",
    "action",
];

impl ShowArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let found = connection.client.software_deployment(&self.deployment).await;
        let found = found.map_err(missing("Software Deployment", &self.deployment))?;
        let cell = |name: &str| (name.to_owned(), Cell::from(found.get(name).cloned().unwrap_or_default()));
        let shown: One = COLUMNS.into_iter().chain(self.long.then_some("output_values")).map(cell).collect();
        Ok(self.output.one(shown, Format::Table)?)
    }
}

impl DeleteArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let delete = async |id: &str| connection.client.delete_software_deployment(id).await;
        self.deployments.delete("deployments", "Software Deployment", delete).await
    }
}

impl MetadataArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let metadata = connection.client.deployment_metadata(&self.server).await?;
        Ok(OutputArgs::default().one(vec![("metadata".to_owned(), metadata.into())], Format::Json)?)
    }
}

impl OutputArg {
    async fn run(self, connection: &Connection) -> Outcome {
        let id = &self.deployment;
        let found = connection.client.software_deployment(id).await.map_err(missing("Deployment", id))?;
        let mut shown = found.get("output_values").and_then(Value::as_map).cloned().unwrap_or_default();
        if let Some(name) = self.output {
            let value = shown.swap_remove(&name);
            let value =
                value.ok_or_else(|| Failure::new(format!("Output {name} does not exist in deployment {id}")))?;
            shown = Map::from([(name, value)]);
        }
        Ok(OutputArgs::default().one(entries(shown.into()), Format::Yaml)?)
    }
}
