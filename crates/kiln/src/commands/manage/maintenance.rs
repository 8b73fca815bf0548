//! `kiln manage maintenance …`.

use clap::Args;
use kiln_config::{Config, ConfigArgs};
use kiln_console::output::print;
use kiln_server::database;

use crate::cli::Global;
use crate::commands::effect::Effect;
use crate::failure::{Failure, Outcome};

group! {
    /// `manage maintenance …`.
    MaintenanceCommand with Global {
        On(OnArgs),
        Off(OffArgs),
        Show(ShowArgs),
    }
}

/// Let requests read but not change anything; running operations go on
#[derive(Args, Debug)]
#[command(add = Effect::Changes("nothing of the stacks"))]
#[command(after_help = "\
All processes with an API follow within 2 seconds. They answer requests that change something with 503 and \
the text. Requests that read, signals of servers and alarms, and the agents of software deployments work as \
ever, and engines go on with operations that were accepted before.

Examples:
  kiln manage maintenance on
  kiln manage maintenance on --message 'Maintenance until 06:00 UTC.'
  kiln manage maintenance off")]
pub(crate) struct OnArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// What clients are told
    #[arg(long, value_name = "TEXT", default_value = "The service is in maintenance: try again later.")]
    message: String,
}

/// Let requests change stacks again
#[derive(Args, Debug)]
#[command(add = Effect::Changes("nothing of the stacks"))]
pub(crate) struct OffArgs {
    #[command(flatten)]
    config: ConfigArgs,
}

/// Print what clients are told; exits with 1 if there is no maintenance
#[derive(Args, Debug)]
#[command(add = Effect::Reads)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    config: ConfigArgs,
}

impl OnArgs {
    async fn run(self, _: &Global) -> Outcome {
        set(&self.config, Some(&self.message)).await
    }
}

impl OffArgs {
    async fn run(self, _: &Global) -> Outcome {
        set(&self.config, None).await
    }
}

impl ShowArgs {
    async fn run(self, _: &Global) -> Outcome {
        let store = Box::pin(database::open_unchanged(&Config::load(&self.config)?)).await?;
        match store.maintenance().await.map_err(|error| Failure::new(error.to_string()))? {
            Some(text) => Ok(print(&format!("{text}\n"))?),
            None => Err(Failure::new("there is no maintenance")),
        }
    }
}

async fn set(config: &ConfigArgs, text: Option<&str>) -> Outcome {
    let store = Box::pin(database::open_unchanged(&Config::load(config)?)).await?;
    store.set_maintenance(text).await.map_err(|error| Failure::new(error.to_string()))
}
