//! `kiln software config …`.

use std::path::{Path, PathBuf};

use clap::Args;
use kiln_console::output::{Format, List, OutputArgs, print};
use kiln_value::{Map, Value, text};

use super::{IdsArg, missing};
use crate::commands::effect::Effect;
use crate::commands::stack::entries;
use crate::connect::Connection;
use crate::failure::{Failure, Outcome};

group! {
    /// `software config …`.
    ConfigCommand {
        Create(CreateArgs),
        List(ListArgs),
        Show(ShowArgs),
        Delete(DeleteArgs),
    }
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

/// Delete software configs
#[derive(Args, Debug)]
#[command(add = Effect::Destroys)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    configs: IdsArg,
}

impl CreateArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let made = connection.client.create_software_config(&self.config()?).await?;
        Ok(self.output.one(entries(made), Format::Json)?)
    }

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

fn read(file: &Path) -> Outcome<String> {
    std::fs::read_to_string(file).map_err(|error| Failure::new(format!("{}: {error}", file.display())))
}

impl ListArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let configs = connection.client.software_configs(self.limit, self.marker.as_deref()).await?;
        let columns = ["id", "name", "group", "creation_time"].map(|name| (name, name));
        Ok(self.output.list(List::of(&configs, &columns), Format::Table)?)
    }
}

impl ShowArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let found = connection.client.software_config(&self.config).await;
        let found = found.map_err(missing("Configuration", &self.config))?;
        if self.config_only {
            let config = found.get("config").map(text::str).unwrap_or_default();
            return Ok(print(&format!("{config}\n"))?);
        }
        Ok(self.output.one(entries(found), Format::Yaml)?)
    }
}

impl DeleteArgs {
    async fn run(self, connection: &Connection) -> Outcome {
        let delete = async |id: &str| connection.client.delete_software_config(id).await;
        self.configs.delete("configs", "Configuration", delete).await
    }
}
