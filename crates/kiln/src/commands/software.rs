//! `kiln software …`: configs and deployments for servers.

mod deploy;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use kiln_console::output::{self, Cell, Format, List, One, OutputArgs};
use kiln_value::{Map, Value, text};

use super::confirm::ConfirmArgs;
use super::stack::entries;
use crate::commands::effect::Effect;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

group! {
    /// Commands for software configs and deployments.
    SoftwareCommand {
        /// Create, list, show and delete software configs
        #[command(subcommand)]
        Config(ConfigCommand),
        /// Create, list, show and delete software deployments
        #[command(subcommand)]
        Deployment(DeploymentCommand),
    }
}

/// `software config …`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    Create(CreateArgs),
    List(ListArgs),
    Show(ShowArgs),
    /// Delete software configs
    #[command(add = Effect::Destroys)]
    Delete(IdsArg),
}

/// `software deployment …`.
#[derive(Debug, Subcommand)]
pub(crate) enum DeploymentCommand {
    Create(deploy::DeployArgs),
    List(DeploymentsArgs),
    Show(DeploymentArgs),
    /// Delete software deployments
    #[command(add = Effect::Destroys)]
    Delete(IdsArg),
    /// Show what is deployed to a server
    #[command(subcommand)]
    Metadata(MetadataCommand),
    /// Show outputs of a software deployment
    #[command(subcommand)]
    Output(OutputCommand),
}

/// `software deployment metadata …`.
#[derive(Debug, Subcommand)]
pub(crate) enum MetadataCommand {
    Show(ServerArg),
}

/// `software deployment output …`.
#[derive(Debug, Subcommand)]
pub(crate) enum OutputCommand {
    Show(OutputOf),
}

/// Create a software config
#[derive(Args, Debug)]
#[command(add = Effect::Changes("adds"))]
#[command(after_help = "\
Examples:
  kiln software config create --group script --config-file install.sh install
  kiln software config create --definition-file inputs.yaml --config-file install.sh install")]
pub(crate) struct CreateArgs {
    /// Name of the config
    #[arg(value_name = "CONFIG-NAME")]
    name: String,
    /// File with the configuration
    #[arg(long, value_name = "FILE")]
    config_file: Option<PathBuf>,
    /// YAML or JSON file with inputs, outputs and options
    #[arg(long, value_name = "FILE")]
    definition_file: Option<PathBuf>,
    /// Group of the tool that applies the configuration
    #[arg(long, value_name = "GROUP", default_value = "Heat::Ungrouped")]
    group: String,
    #[command(flatten)]
    output: OutputArgs,
}

/// List the software configs
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ListArgs {
    /// Maximum number of configs
    #[arg(long, value_name = "LIMIT")]
    limit: Option<u64>,
    /// Only configs after the one with this ID
    #[arg(long, value_name = "ID")]
    marker: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Show a software config
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ShowArgs {
    /// ID of the config
    #[arg(value_name = "CONFIG")]
    config: String,
    /// Print only the configuration
    #[arg(long)]
    config_only: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// IDs of configs or deployments.
#[derive(Args, Debug)]
pub(crate) struct IdsArg {
    /// IDs
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

/// List the software deployments
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct DeploymentsArgs {
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
pub(crate) struct DeploymentArgs {
    /// ID of the deployment
    #[arg(value_name = "DEPLOYMENT")]
    deployment: String,
    /// Show the outputs, too
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Show the configs that are deployed to a server, as its agent reads them
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ServerArg {
    /// ID of the server
    #[arg(value_name = "SERVER")]
    server: String,
}

/// Show an output, or all
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct OutputOf {
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

impl ConfigCommand {
    async fn run(self, connection: &Connection) -> Outcome {
        let client = &connection.client;
        match self {
            Self::Create(args) => {
                let made = client.create_software_config(&args.config()?).await?;
                Ok(args.output.one(entries(made), Format::Json)?)
            }
            Self::List(args) => {
                let configs = client.software_configs(args.limit, args.marker.as_deref()).await?;
                let columns = ["id", "name", "group", "creation_time"];
                Ok(args.output.list(table(&configs, &columns), Format::Table)?)
            }
            Self::Show(args) => {
                let found =
                    client.software_config(&args.config).await.map_err(missing("Configuration", &args.config))?;
                if args.config_only {
                    let config = found.get("config").map(text::str).unwrap_or_default();
                    return Ok(output::print(&format!("{config}\n"))?);
                }
                Ok(args.output.one(entries(found), Format::Yaml)?)
            }
            Self::Delete(IdsArg { ids, confirm }) => {
                confirm.if_demanded("Are you sure you want to delete these configs [y/N]? ").await?;
                for id in ids {
                    client.delete_software_config(&id).await.map_err(missing("Configuration", &id))?;
                }
                Ok(())
            }
        }
    }
}

impl CreateArgs {
    fn config(&self) -> Outcome<Value> {
        let mut config = match &self.definition_file {
            Some(file) => {
                let parsed = kiln_yaml::parse(&read(file)?);
                let parsed = parsed.map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
                let is_not = || Failure::new(format!("{}: the definition is not a map", file.display()));
                parsed.value.as_map().cloned().ok_or_else(is_not)?
            }
            None => Map::new(),
        };
        if let Some(file) = &self.config_file {
            config.insert("config".to_owned(), read(file)?.into());
        }
        config.insert("name".to_owned(), self.name.as_str().into());
        config.insert("group".to_owned(), self.group.as_str().into());
        Ok(config.into())
    }
}

impl DeploymentCommand {
    async fn run(self, connection: &Connection) -> Outcome {
        let client = &connection.client;
        match self {
            Self::Create(args) => args.run(connection).await,
            Self::List(args) => {
                let deployments = client.software_deployments(args.server.as_deref()).await?;
                let mut columns = vec!["id", "config_id", "server_id", "action", "status"];
                if args.long {
                    columns.extend(["creation_time", "status_reason"]);
                }
                Ok(args.output.list(table(&deployments, &columns), Format::Table)?)
            }
            Self::Show(args) => {
                let id = &args.deployment;
                let found = client.software_deployment(id).await.map_err(missing("Software Deployment", id))?;
                let mut columns = vec![
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
                columns.extend(args.long.then_some("output_values"));
                let cell = |name: &&str| ((*name).to_owned(), Cell::from(found.get(name).cloned().unwrap_or_default()));
                let shown: One = columns.iter().map(cell).collect();
                Ok(args.output.one(shown, Format::Table)?)
            }
            Self::Delete(IdsArg { ids, confirm }) => {
                confirm.if_demanded("Are you sure you want to delete these deployments [y/N]? ").await?;
                for id in ids {
                    client.delete_software_deployment(&id).await.map_err(missing("Software Deployment", &id))?;
                }
                Ok(())
            }
            Self::Metadata(MetadataCommand::Show(ServerArg { server })) => {
                let metadata = client.deployment_metadata(&server).await?;
                Ok(OutputArgs::default().one(vec![("metadata".to_owned(), metadata.into())], Format::Json)?)
            }
            Self::Output(OutputCommand::Show(args)) => {
                let id = &args.deployment;
                let found = client.software_deployment(id).await.map_err(missing("Deployment", id))?;
                let outputs = found.get("output_values").and_then(Value::as_map).cloned().unwrap_or_default();
                let shown = match &args.output {
                    None => outputs,
                    Some(name) => {
                        let value = outputs
                            .get(name)
                            .cloned()
                            .ok_or_else(|| Failure::new(format!("Output {name} does not exist in deployment {id}")))?;
                        Map::from([(name.clone(), value)])
                    }
                };
                Ok(OutputArgs::default().one(entries(shown.into()), Format::Yaml)?)
            }
        }
    }
}

fn read(file: &Path) -> Outcome<String> {
    std::fs::read_to_string(file).map_err(|error| Failure::new(format!("{}: {error}", file.display())))
}

fn table(items: &[Value], columns: &[&str]) -> List {
    let row = |item: &Value| columns.iter().map(|key| Cell::from(item.get(key).cloned())).collect();
    List { columns: columns.iter().map(|name| (*name).to_owned()).collect(), rows: items.iter().map(row).collect() }
}

fn missing<'a>(what: &'a str, id: &'a str) -> impl Fn(kiln_client::Error) -> Failure + 'a {
    move |error| if error.is_not_found() { Failure::new(format!("{what} not found: {id}")) } else { error.into() }
}
